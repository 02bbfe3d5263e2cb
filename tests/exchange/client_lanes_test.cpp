// What goes over a client's lanes: how many it opens, how fast it sends, and probes.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "tests/exchange/client_desk.h"

namespace longhaul {
namespace {

using testing::ClientCoreTest;
using testing::HandConnector;
using testing::kClientElements;
using testing::NewsBook;

using ClientLanes = ClientCoreTest;

CheckedPayload payload_of_bytes(std::size_t bytes) {
  return testing_data::dense(std::vector<float>((bytes - kPayloadHeaderBytes) / sizeof(float)));
}

// Round trips of 0.2 s, and 40 MB/s up as the hub says: 8 MB on the way.
class FastPathTest : public ClientCoreTest {
 protected:
  void SetUp() override {
    ClientCoreTest::SetUp();
    enroll(0);
    core_.submit({.round = {.step = 0}, .payload = payload_of_bytes(32'000'000)});
    pass(0.2, 40e6);
  }
  // A ping and its answer.
  void pass(double round_trip_s, double up_bytes_per_s) {
    Frame frame;
    for (int i = 0; i < 100; ++i) {
      tick(Seconds(0.05));
      const auto ping = stream(control_).take(Frame::kPing);
      written(control_);
      if (!ping) continue;
      now_ = time_after(now_, Seconds(round_trip_s));
      frame.mutable_pong()->set_id(ping->ping().id());
      frame.mutable_pong()->set_up_bytes_per_s(up_bytes_per_s);
      return hear(control_, frame);
    }
    FAIL() << "no ping";
  }
};

TEST_F(FastPathTest, MoreLanesAreOpenedWhereThePathNeedsThem) {
  ASSERT_EQ(connector_.streams.size(), 9U) << "control, one lane, and seven more";
  const auto opened = stream(9).take(Frame::kOpenLane);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->open_lane().session(), 77U);
  for (StreamId id = 3; id <= 9; ++id) written(id);
  EXPECT_TRUE(stream(9).take(Frame::kChunk)) << "it carries part of the update";
  pass(0.2, 40e6);
  EXPECT_EQ(connector_.streams.size(), 9U);
}

TEST_F(FastPathTest, APathThatHasBecomeLongerIsToldAfterHalfAMinute) {
  const auto told = [&] {
    core_.report({});
    double round_trip = 0;
    while (const auto report = stream(control_).take(Frame::kReport))
      round_trip = report->report().round_trip_s();
    return round_trip;
  };
  EXPECT_NEAR(told(), 0.2, 1e-6);
  pass(0.5, 40e6);
  EXPECT_NEAR(told(), 0.2, 1e-6) << "it may have waited behind others";
  for (int i = 0; i < 30; ++i) pass(0.5, 40e6);
  EXPECT_NEAR(told(), 0.5, 1e-6);
  pass(0.1, 40e6);
  EXPECT_NEAR(told(), 0.1, 1e-6);
}

TEST_F(FastPathTest, EveryRoundTripIsTold) {
  pass(0.5, 40e6);
  ASSERT_EQ(news_.round_trips.size(), 2U);
  EXPECT_NEAR(news_.round_trips[0].count(), 0.2, 1e-6);
  EXPECT_NEAR(news_.round_trips[1].count(), 0.5, 1e-6);
}

TEST_F(FastPathTest, ALaneThatCannotComeBesideTheOthersIsNoLoss) {
  for (StreamId id = 3; id < 9; ++id) written(id);
  core_.on_event({.stream = 9, .what = StreamClosed{ErrorCode::kClosed, "refused"}}, now_);
  EXPECT_EQ(core_.reconnections(), 0U);
  pass(0.2, 40e6);
  EXPECT_EQ(connector_.streams.size(), 9U) << "not tried again";
  core_.on_event({.stream = 8, .what = StreamClosed{ErrorCode::kClosed, "broken"}}, now_);
  EXPECT_EQ(core_.reconnections(), 1U) << "chunks may have been on it";
}

TEST_F(FastPathTest, ConnectsAnewWithAsManyLanes) {
  for (StreamId id = 3; id <= 9; ++id) written(id);
  breaks();
  for (int i = 0; i < 100 && connector_.streams.size() == 9; ++i) tick(Seconds(0.1));
  const auto frame = stream(10).take(Frame::kJoin);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->join().lanes(), 8U);
}

TEST(CappedClientCore, ARateHoldsBackUpdatesAndNeverControlFrames) {
  HandConnector connector;
  NewsBook news;
  TimePoint now = time_after(TimePoint{}, Seconds(100));
  testing::HandErrands errands;
  ClientCore core(
      {.name = "me", .elements = kClientElements, .rate = Bandwidth{.bytes_per_second = 10'000}},
      connector, [](const StreamEvent& /*event*/) {}, errands, news);
  const auto hear = [&](StreamId id, Frame frame) {
    core.on_event({.stream = id, .what = std::move(frame)}, now);
  };
  const auto written = [&](StreamId id) {
    core.on_event({.stream = id, .what = FrameWritten{}}, now);
  };
  core.on_tick(now);
  written(1);
  Frame frame;
  frame.mutable_welcome()->set_session(77);
  hear(1, frame);
  written(2);
  frame.mutable_enrolled();
  *frame.mutable_enrolled()->mutable_plan() = to_message(Plan{});
  hear(1, frame);
  core.submit({.round = {}, .payload = payload_of_bytes(1'000'000)});
  std::size_t bytes = 0;
  std::size_t pings = 0;
  for (int tenths = 0; tenths < 40; ++tenths) {
    now = time_after(now, Seconds(0.1));
    core.on_tick(now);
    while (const auto chunk = connector.streams[1]->take(Frame::kChunk)) {
      bytes += chunk->chunk().data().size();
      written(2);
    }
    std::deque<Frame>& control = connector.streams[0]->written;
    while (!control.empty()) {
      const Frame sent = std::move(control.front());
      control.pop_front();
      written(1);
      if (!sent.has_ping()) continue;
      ++pings;
      frame.mutable_pong()->set_id(sent.ping().id());
      hear(1, frame);
    }
  }
  EXPECT_NEAR(static_cast<double>(bytes), 40'000, 2'000);
  EXPECT_EQ(pings, 4U);
}

TEST_F(ClientLanes, WhatIsNotAChunkEndsALane) {
  Frame frame;
  frame.mutable_pong();
  hear(lane_, frame);
  EXPECT_EQ(core_.reconnections(), 1U);
}

TEST_F(ClientLanes, SendsAProbeWhereTheHubAsksForOne) {
  const auto probe_of = [&](std::uint64_t bytes) {
    Frame frame;
    frame.mutable_send_probe()->set_bytes(bytes);
    hear(control_, frame);
    std::size_t size = 0;
    for (;; written(lane_)) {
      const auto chunk = stream(lane_).take(Frame::kChunk);
      if (!chunk) return size;
      EXPECT_EQ(chunk->chunk().cargo(), v1::CARGO_PROBE);
      size += chunk->chunk().data().size();
    }
  };
  EXPECT_EQ(probe_of(5000), 5000U);
  EXPECT_EQ(probe_of(std::uint64_t{1} << 40U), kMostIdleProbeBytes);
}

TEST_F(ClientLanes, ProbesDoNotPileUpHoweverManyAreAskedFor) {
  Frame frame;
  frame.mutable_send_probe()->set_bytes(5000);
  for (int i = 0; i < 1000; ++i) hear(control_, frame);
  std::set<std::uint64_t> probes;
  for (;; written(lane_)) {
    const auto chunk = stream(lane_).take(Frame::kChunk);
    if (!chunk) break;
    probes.insert(chunk->chunk().step());
  }
  EXPECT_LT(probes.size(), 20U);
}

}  // namespace
}  // namespace longhaul
