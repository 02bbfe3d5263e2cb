// A replica's side of the protocol, with the test as the hub.
#include "longhaul/exchange/client_core.h"

#include <gtest/gtest.h>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"
#include "tests/transport/hand_stream.h"

namespace longhaul {
namespace {

using testing::HandStream;
using testing::HandStreamPtr;

constexpr std::size_t kClientElements = 4;

ByteBuffer payload_with(float value) {
  Workers workers{1};
  std::vector<float> residual(kClientElements);
  const std::vector<float> update(kClientElements, value);
  return make_codec(parse_codec("dense/fp32").value(), {{.name = "all", .count = kClientElements}},
                    workers)
      ->take({.residual = residual, .increment = update, .keep_ratio = 1});
}

SharedBytes shared(ByteBuffer bytes) {
  return std::make_shared<const ByteBuffer>(std::move(bytes));
}

struct NewsBook final : ClientNews {
  void on_welcome(const Place& /*place*/, std::optional<Contributed> told) override {
    contributed = std::move(told);
  }
  void on_enrolled(std::uint64_t from_step, const Plan& /*plan*/) override {
    enrolled.push_back(from_step);
  }
  void on_mean(Mean mean, std::optional<std::uint64_t> own) override {
    means.push_back({mean.round.step, (*mean.values)[0]});
    owns.push_back(own);
  }
  void on_restart(State /*state*/) override { ++restarts; }
  void on_finish(std::uint64_t /*last_step*/) override {}
  void on_lost(const Error& why) override { lost.push_back(why.message); }
  void on_failed(const Error& why) override { failure = why; }
  void on_left() override { has_left = true; }

  std::optional<Contributed> contributed;
  std::vector<std::uint64_t> enrolled;
  std::vector<std::pair<std::uint64_t, float>> means;
  std::vector<std::optional<std::uint64_t>> owns;
  int restarts = 0;
  std::vector<std::string> lost;
  std::optional<Error> failure;
  bool has_left = false;
};

class DeafInbox final : public StreamInbox {
  void put(StreamEvent /*event*/) override {}
};

class HandConnector final : public Connector {
 public:
  StreamPtr open(StreamEventsPtr /*events*/) override {
    streams.push_back(std::make_shared<HandStream>());
    return streams.back();
  }
  std::vector<HandStreamPtr> streams;  // ids are 1, 2, …
};

class ClientCoreTest : public ::testing::Test {
 protected:
  explicit ClientCoreTest(ClientSetup setup = {.name = "me",
                                               .elements = kClientElements,
                                               .initial = shared(ByteBuffer(16))})
      : core_(std::move(setup), connector_, std::make_shared<DeafInbox>(), news_) {}
  void SetUp() override { connect(); }

  void tick(Seconds by = Seconds(0)) {
    now_ = time_after(now_, by);
    core_.on_tick(now_);
  }
  // Dials, and is welcome with one lane.
  void connect() {
    const std::size_t before = connector_.streams.size();
    for (int i = 0; i < 100 && connector_.streams.size() == before; ++i) tick(Seconds(0.1));
    ASSERT_EQ(connector_.streams.size(), before + 1);
    control_ = connector_.streams.size();
    const auto frame = stream(control_).take(Frame::kJoin);
    ASSERT_TRUE(frame);
    join_ = frame->join();
    written(control_);
    Frame welcome;
    welcome.mutable_welcome()->set_session(77);
    welcome.mutable_welcome()->set_slot(1);
    hear(control_, welcome);
    lane_ = connector_.streams.size();
    written(lane_);
    (void)stream(lane_).take(Frame::kOpenLane);
  }
  void enroll(std::uint64_t from_step) {
    Frame frame;
    frame.mutable_enrolled()->set_from_step(from_step);
    *frame.mutable_enrolled()->mutable_plan() = to_message(Plan{});
    hear(control_, frame);
  }
  void breaks() {
    core_.on_event({.stream = lane_, .what = StreamClosed{{ErrorCode::kClosed, "broken"}}}, now_);
  }
  void hear(StreamId id, Frame frame) {
    core_.on_event({.stream = id, .what = FrameArrived{std::move(frame)}}, now_);
  }
  void written(StreamId id) { core_.on_event({.stream = id, .what = FrameWritten{}}, now_); }
  HandStream& stream(StreamId id) { return *connector_.streams[id - 1]; }

  void closed(std::uint64_t step, std::optional<std::uint64_t> own = {}) {
    Frame frame;
    frame.mutable_closed()->set_step(step);
    frame.mutable_closed()->set_way(v1::WAY_UNION);
    if (own) frame.mutable_closed()->set_own(*own);
    hear(control_, frame);
  }
  void cargo(TransferId id, ByteBuffer bytes) {
    OutgoingCargo out;
    out.add(id, shared(std::move(bytes)));
    while (!out.is_empty()) hear(lane_, out.next_chunk());
  }
  void mean(std::uint64_t step, float value, std::uint32_t restarts = 0) {
    cargo({.cargo = Cargo::kMean, .step = step, .restarts = restarts}, payload_with(value));
  }
  void restart(std::uint64_t next_round, std::uint64_t first_step) {
    Frame frame;
    frame.mutable_restart()->set_bytes(to_bytes(State{}).size());
    frame.mutable_restart()->set_next_round(next_round);
    frame.mutable_restart()->set_first_step(first_step);
    hear(control_, frame);
  }
  void snapshot(std::uint32_t restarts) {
    cargo({.cargo = Cargo::kSnapshot, .restarts = restarts}, to_bytes(State{}));
  }
  // Steps of the updates that it sent on the lane.
  std::vector<std::uint64_t> sent() {
    std::vector<std::uint64_t> steps;
    for (;;) {
      while (const auto chunk = stream(lane_).take(Frame::kChunk)) {
        steps.push_back(chunk->chunk().step());
        attendances_.push_back(attendance_from(chunk->chunk().attendance(), steps.back()).value());
      }
      written(lane_);
      if (stream(lane_).written.empty()) return steps;
    }
  }

  HandConnector connector_;
  NewsBook news_;
  TimePoint now_ = time_after(TimePoint{}, Seconds(100));
  ClientCore core_;
  StreamId control_ = 0;
  StreamId lane_ = 0;
  v1::Join join_;
  std::vector<Attendance> attendances_;  // of what it sent
};

using Means = std::vector<std::pair<std::uint64_t, float>>;

TEST_F(ClientCoreTest, ConnectsAnewWithItsSessionAndSlot) {
  EXPECT_EQ(join_.session(), 0U);
  EXPECT_FALSE(join_.has_slot());
  breaks();
  connect();
  EXPECT_EQ(join_.session(), 77U);
  EXPECT_EQ(join_.slot(), 1U);
}

TEST_F(ClientCoreTest, IsToldWhatIsInOfIt) {
  EXPECT_FALSE(news_.contributed);
  Frame welcome;
  v1::Contributed& contributed = *welcome.mutable_welcome()->mutable_contributed();
  contributed.set_step(9);
  contributed.mutable_attendance()->set_since(10);  // impossible
  hear(control_, welcome);
  EXPECT_FALSE(news_.contributed);
  EXPECT_EQ(news_.lost.size(), 1U);
  connect();
  contributed.mutable_attendance()->set_since(3);
  hear(control_, welcome);
  ASSERT_TRUE(news_.contributed);
  EXPECT_EQ(news_.contributed->step, 9U);
  EXPECT_EQ(news_.contributed->attendance, Attendance{.since = 3});
}

TEST_F(ClientCoreTest, WhoLeavesTellsTheHubAndDoesNotComeBack) {
  core_.leave();
  written(control_);
  EXPECT_TRUE(stream(control_).take(Frame::kLeave));
  EXPECT_FALSE(news_.has_left) << "the hub has not answered yet";
  breaks();
  EXPECT_TRUE(news_.has_left);
  EXPECT_TRUE(news_.lost.empty());
  EXPECT_EQ(core_.reconnections(), 0U);
  const std::size_t streams = connector_.streams.size();
  for (int i = 0; i < 100; ++i) tick(Seconds(1));
  EXPECT_EQ(connector_.streams.size(), streams);
}

TEST_F(ClientCoreTest, WhoLeavesWhileTheHubIsAwayComesBackToSaySo) {
  breaks();
  core_.leave();
  EXPECT_FALSE(news_.has_left);
  const std::size_t before = connector_.streams.size();
  for (int i = 0; i < 100 && connector_.streams.size() == before; ++i) tick(Seconds(0.1));
  control_ = connector_.streams.size();
  written(control_);
  Frame welcome;
  welcome.mutable_welcome()->set_session(77);
  hear(control_, welcome);
  written(control_);
  EXPECT_TRUE(stream(control_).take(Frame::kLeave));
  EXPECT_EQ(connector_.streams.size(), control_) << "and opens no lanes";
}

TEST_F(ClientCoreTest, AHubThatIsSilentIsGone) {
  tick(Seconds(4.9));
  EXPECT_EQ(core_.reconnections(), 0U);
  tick(Seconds(0.2));
  EXPECT_EQ(core_.reconnections(), 1U);
  EXPECT_TRUE(stream(control_).is_closed);
  EXPECT_TRUE(stream(lane_).is_closed);
}

TEST_F(ClientCoreTest, SendsAgainWhatWasNotMerged) {
  enroll(0);
  for (std::uint64_t step = 0; step < 3; ++step)
    core_.submit(step, {.payload = shared(payload_with(1))});
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{0, 1, 2}));
  closed(0);
  mean(0, 5);
  breaks();
  core_.submit(3, {.payload = shared(payload_with(1))});
  connect();
  EXPECT_EQ(join_.next_round(), 1U);
  closed(1);
  mean(1, 6);
  enroll(2);
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(news_.means, (Means{{0, 5.0F}, {1, 6.0F}}));
}

TEST_F(ClientCoreTest, AMeanThatComesAgainIsNotToldAgain) {
  enroll(0);
  for (int i = 0; i < 2; ++i) {
    closed(0, 9);
    closed(1, 9);
    mean(1, 5);
    breaks();
    connect();
  }
  closed(0, 9);
  mean(0, 5);
  EXPECT_EQ(news_.means, (Means{{1, 5.0F}, {0, 5.0F}}));
  EXPECT_EQ(news_.owns.front(), 9U);
}

// What the hub did not announce before a later round does not exist.
TEST_F(ClientCoreTest, KnowsWhichMeansItHasThoughStepsHaveNoRound) {
  enroll(0);
  closed(3);
  closed(7);
  mean(7, 6);
  breaks();
  connect();
  EXPECT_EQ(join_.next_round(), 3U) << "the mean of step 3 has not come";
  closed(3);
  closed(7);
  mean(3, 5);
  breaks();
  connect();
  EXPECT_EQ(join_.next_round(), 7U) << "whose mean did not come again on this connection";
  closed(7);
  mean(7, 6);
  EXPECT_EQ(news_.means, (Means{{7, 6.0F}, {3, 5.0F}}));
  breaks();
  connect();
  EXPECT_EQ(join_.next_round(), 8U);
}

TEST_F(ClientCoreTest, RoundsThatDoNotCloseInOrderEndTheConnection) {
  enroll(0);
  closed(7);
  closed(3);
  EXPECT_EQ(core_.reconnections(), 1U);
}

TEST_F(ClientCoreTest, AMeanOfMoreThanTheModelEndsTheConnection) {
  enroll(0);
  Frame frame;
  frame.mutable_closed()->set_elements(1'000'000);
  frame.mutable_closed()->set_way(v1::WAY_UNION);
  hear(control_, frame);
  mean(0, 5);
  EXPECT_EQ(core_.reconnections(), 1U);
}

TEST_F(ClientCoreTest, AnUpdateWhoseMeanIsHereIsNotSent) {
  enroll(0);
  closed(0);
  mean(0, 5);
  core_.submit(0, {.payload = shared(payload_with(1))});
  EXPECT_TRUE(sent().empty());
  EXPECT_TRUE(core_.kept().empty());
}

TEST_F(ClientCoreTest, NothingChangesUntilTheSnapshotIsHere) {
  enroll(0);
  core_.submit(0, {.payload = shared(payload_with(1))});
  restart(100, 102);
  breaks();
  connect();
  EXPECT_EQ(join_.next_round(), 0U);
  EXPECT_EQ(news_.restarts, 0);
  EXPECT_EQ(core_.kept().size(), 1U);
}

TEST_F(ClientCoreTest, MeansWaitForTheSnapshotThatTheyFollow) {
  restart(100, 102);
  closed(100);
  mean(100, 5, 1);
  EXPECT_TRUE(news_.means.empty());
  snapshot(1);
  EXPECT_EQ(news_.restarts, 1);
  EXPECT_EQ(news_.means, (Means{{100, 5.0F}}));
}

TEST_F(ClientCoreTest, ASnapshotMayOvertakeItsAnnouncement) {
  mean(100, 5, 1);
  snapshot(1);
  EXPECT_EQ(news_.restarts, 0);
  restart(100, 102);
  EXPECT_EQ(news_.restarts, 1);
  closed(100);
  EXPECT_EQ(news_.means, (Means{{100, 5.0F}}));
}

TEST_F(ClientCoreTest, CargoOfAStateThatIsGoneIsNotTakenForTheNext) {
  enroll(0);
  closed(3);
  restart(3, 5);
  mean(3, 1, 0);  // announced before, and late
  snapshot(1);
  closed(3);
  EXPECT_TRUE(news_.means.empty());
  mean(3, 2, 1);
  EXPECT_EQ(news_.means, (Means{{3, 2.0F}}));
}

TEST_F(ClientCoreTest, OfTwoSnapshotsTheLastOneCounts) {
  restart(3, 5);
  restart(8, 10);
  snapshot(1);
  EXPECT_EQ(news_.restarts, 0);
  snapshot(2);
  EXPECT_EQ(news_.restarts, 1);
  breaks();
  connect();
  EXPECT_EQ(join_.next_round(), 8U);
  EXPECT_EQ(join_.first_step(), 10U);
  EXPECT_FALSE(join_.is_fresh());
}

TEST_F(ClientCoreTest, WhatWasSubmittedBeforeASnapshotIsForgotten) {
  enroll(0);
  for (std::uint64_t step = 0; step < 6; ++step)
    core_.submit(step, {.payload = shared(payload_with(1))});
  (void)sent();
  restart(3, 5);
  snapshot(1);
  enroll(5);
  EXPECT_TRUE(sent().empty());
}

TEST_F(ClientCoreTest, AForwardedMeanNeedsTheVeryUpdateThatItCountsOn) {
  enroll(0);
  core_.submit(0, {.payload = shared(payload_with(1))});
  Frame frame;
  frame.mutable_closed()->set_way(v1::WAY_FORWARDED);
  frame.mutable_closed()->set_own(digest_of(payload_with(2)));
  v1::Contribution& own = *frame.mutable_closed()->add_contributions();
  own.set_slot(1);
  own.set_weight(1);
  hear(control_, frame);
  cargo({.cargo = Cargo::kMean}, {});
  EXPECT_TRUE(news_.means.empty());
  EXPECT_EQ(core_.reconnections(), 1U);
}

TEST_F(ClientCoreTest, ARefusalForGoodIsFinalAndAnotherIsNot) {
  breaks();
  for (const bool is_final : {false, true}) {
    const std::size_t before = connector_.streams.size();
    while (connector_.streams.size() == before) tick(Seconds(0.1));
    Frame frame;
    frame.mutable_refused()->set_is_final(is_final);
    hear(connector_.streams.size(), frame);
    EXPECT_EQ(news_.failure.has_value(), is_final);
  }
}

// Round trips of 0.2 s, and 40 MB/s up as the hub says: 8 MB on the way.
class FastPathTest : public ClientCoreTest {
 protected:
  void SetUp() override {
    ClientCoreTest::SetUp();
    enroll(0);
    core_.submit(0, {.payload = shared(ByteBuffer(32'000'000))});
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

TEST_F(FastPathTest, ALaneThatCannotComeBesideTheOthersIsNoLoss) {
  for (StreamId id = 3; id < 9; ++id) written(id);
  core_.on_event({.stream = 9, .what = StreamClosed{{ErrorCode::kClosed, "refused"}}}, now_);
  EXPECT_EQ(core_.reconnections(), 0U);
  pass(0.2, 40e6);
  EXPECT_EQ(connector_.streams.size(), 9U) << "not tried again";
  core_.on_event({.stream = 8, .what = StreamClosed{{ErrorCode::kClosed, "broken"}}}, now_);
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
  ClientCore core(
      {.name = "me", .elements = kClientElements, .rate = Bandwidth{.bytes_per_second = 10'000}},
      connector, std::make_shared<DeafInbox>(), news);
  const auto hear = [&](StreamId id, Frame frame) {
    core.on_event({.stream = id, .what = FrameArrived{std::move(frame)}}, now);
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
  core.submit(0, {.payload = shared(ByteBuffer(1'000'000))});
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

TEST_F(ClientCoreTest, WhatIsNotAChunkEndsALane) {
  Frame frame;
  frame.mutable_pong();
  hear(lane_, frame);
  EXPECT_EQ(core_.reconnections(), 1U);
}

TEST_F(ClientCoreTest, SendsAProbeWhereTheHubAsksForOne) {
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

TEST_F(ClientCoreTest, ProbesDoNotPileUpHoweverManyAreAskedFor) {
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

TEST_F(ClientCoreTest, TellsWhyAConnectionIsLost) {
  breaks();
  EXPECT_EQ(news_.lost, std::vector<std::string>{"broken"});
}

// From a checkpoint after step 7 with three rounds in flight, of a state that it was given at 4.
class ResumedClientTest : public ClientCoreTest {
 protected:
  ResumedClientTest()
      : ClientCoreTest(
            {.name = "me",
             .slot = 1,
             .elements = kClientElements,
             .is_fresh = false,
             .next_round = 5,
             .first_step = 4,
             .step = 8,
             .own = {{5, {.payload = shared(payload_with(1)), .attendance = {.since = 4}}},
                     {6, {.payload = shared(payload_with(2)), .attendance = {.since = 4}}},
                     {7,
                      {.payload = shared(payload_with(3)),
                       .attendance = {.since = 4, .sat_out = {{6, 6}}}}}}}) {}
};

TEST_F(ResumedClientTest, SaysWhereItStands) {
  EXPECT_FALSE(join_.is_fresh());
  EXPECT_EQ(join_.slot(), 1U);
  EXPECT_EQ(join_.next_round(), 5U);
  EXPECT_EQ(join_.first_step(), 4U);
  EXPECT_EQ(join_.step(), 8U);
  core_.submit(8, {.payload = shared(payload_with(4))});
  breaks();
  connect();
  EXPECT_EQ(join_.step(), 9U);
}

TEST_F(ResumedClientTest, SendsAgainWhatHasNotClosed) {
  closed(5, digest_of(payload_with(1)));
  mean(5, 9);
  enroll(6);
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{6, 7}));
  EXPECT_EQ(attendances_,
            (std::vector<Attendance>{{.since = 4}, {.since = 4, .sat_out = {{6, 6}}}}));
  EXPECT_EQ(news_.owns.front(), digest_of(payload_with(1)));
}

// What it did after the checkpoint, and does again, is in already.
TEST_F(ResumedClientTest, WhatHasClosedIsNotSent) {
  for (std::uint64_t step = 5; step < 10; ++step) {
    closed(step, 1);
    mean(step, 9);
  }
  enroll(10);
  core_.submit(8, {.payload = shared(payload_with(4))});
  EXPECT_TRUE(sent().empty());
  EXPECT_TRUE(core_.kept().empty());
}

}  // namespace
}  // namespace longhaul
