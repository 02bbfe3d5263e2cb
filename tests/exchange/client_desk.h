// A replica's client without threads, streams or time of its own: the test is the hub.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/exchange/client_core.h"
#include "longhaul/exchange/protocol.h"
#include "tests/base/hand_errands.h"
#include "tests/codec/checked.h"
#include "tests/transport/hand_stream.h"

namespace longhaul::testing {

constexpr std::size_t kClientElements = 4;

inline ByteBuffer payload_with(float value) {
  Workers workers{1};
  std::vector<float> residual(kClientElements);
  const std::vector<float> update(kClientElements, value);
  return make_codec(parse_codec("dense/fp32").value(), {{.name = "all", .count = kClientElements}},
                    workers)
      ->take({.residual = residual, .increment = update, .keep_ratio = 1});
}

inline CheckedPayload checked(ByteBuffer bytes) {
  return testing_data::checked(std::move(bytes), kClientElements);
}

inline SharedBytes shared(ByteBuffer bytes) {
  return std::make_shared<const ByteBuffer>(std::move(bytes));
}

struct NewsBook final : ClientNews {
  void on_welcome(std::size_t /*slot*/, std::uint64_t /*run*/,
                  std::optional<Contribution> told) override {
    contributed = std::move(told);
  }
  void on_enrolled(RoundId from, const Plan& /*plan*/) override { enrolled.push_back(from.step); }
  void on_mean(Mean mean) override {
    means.push_back({mean.round.step, mean.to_vector()[0]});
    owns.push_back(mean.own);
    last = std::move(mean);
  }
  void on_restart(State /*state*/) override { ++restarts; }
  void on_finish(std::uint64_t /*last_step*/, v1::FinishCause /*cause*/) override {}
  void on_evaluate(bool is_on) override { is_evaluator = is_on; }
  void on_evaluation(const v1::Evaluation& told) override { evaluations.push_back(told.step()); }
  void on_round_trip(Seconds took) override { round_trips.push_back(took); }
  void on_lost(const Error& why) override { lost.push_back(why.message); }
  void on_failed(const Error& why) override { failure = why; }
  void on_left() override { has_left = true; }

  std::optional<Contribution> contributed;
  std::vector<std::uint64_t> enrolled;
  std::vector<std::pair<std::uint64_t, float>> means;
  Mean last;
  std::vector<std::optional<std::uint64_t>> owns;
  int restarts = 0;
  bool is_evaluator = false;
  std::vector<std::uint64_t> evaluations;  // steps of what others scored
  std::vector<Seconds> round_trips;
  std::vector<std::string> lost;
  std::optional<Error> failure;
  bool has_left = false;
};

class HandConnector final : public Connector {
 public:
  StreamPtr open(StreamListener /*listener*/) override {
    streams.push_back(std::make_shared<HandStream>());
    return streams.back();
  }
  std::vector<HandStreamPtr> streams;  // ids are 1, 2, …
};

class ClientCoreTest : public ::testing::Test {
 protected:
  explicit ClientCoreTest(ClientOptions options = {.name = "me",
                                                   .elements = kClientElements,
                                                   .initial = shared(ByteBuffer(16))})
      : core_(
            std::move(options), connector_, [](const StreamEvent& /*event*/) {}, errands_, news_) {}
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
    frame.mutable_enrolled()->mutable_from()->set_step(from_step);
    *frame.mutable_enrolled()->mutable_plan() = to_message(Plan{});
    hear(control_, frame);
  }
  void breaks() {
    core_.on_event({.stream = lane_, .what = StreamClosed{ErrorCode::kClosed, "broken"}}, now_);
  }
  void hear(StreamId id, Frame frame) {
    core_.on_event({.stream = id, .what = std::move(frame)}, now_);
  }
  void written(StreamId id) { core_.on_event({.stream = id, .what = FrameWritten{}}, now_); }
  HandStream& stream(StreamId id) { return *connector_.streams[id - 1]; }

  void closed(std::uint64_t step, std::optional<std::uint64_t> own = {}, std::uint32_t part = 0) {
    Frame frame;
    frame.mutable_closed()->set_step(step);
    frame.mutable_closed()->set_part(part);
    frame.mutable_closed()->set_way(v1::WAY_UNION);
    if (own) frame.mutable_closed()->set_own(*own);
    hear(control_, frame);
  }
  void cargo(TransferId id, ByteBuffer bytes) {
    OutgoingCargo out;
    out.add(id, shared(std::move(bytes)));
    while (!out.is_empty()) hear(lane_, out.next_chunk());
  }
  void mean(std::uint64_t step, float value, std::uint32_t restarts = 0, std::uint32_t part = 0) {
    cargo({.cargo = Cargo::kMean, .step = step, .part = part, .restarts = restarts},
          payload_with(value));
  }
  void restart(std::uint64_t next_round, std::uint64_t first_step) {
    Frame frame;
    frame.mutable_restart()->set_bytes(to_bytes(State{}).size());
    frame.mutable_restart()->mutable_next_round()->set_step(next_round);
    frame.mutable_restart()->set_first_step(first_step);
    hear(control_, frame);
  }
  void snapshot(std::uint32_t restarts) {
    cargo({.cargo = Cargo::kSnapshot, .restarts = restarts}, to_bytes(State{}));
  }
  // Up to which round it says that it has all means.
  [[nodiscard]] RoundId told_next() const { return round_from(join_.next_round()); }
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
  HandErrands errands_;
  NewsBook news_;
  TimePoint now_ = time_after(TimePoint{}, Seconds(100));
  ClientCore core_;
  StreamId control_ = 0;
  StreamId lane_ = 0;
  v1::Join join_;
  std::vector<Attendance> attendances_;  // of what it sent
};

using Means = std::vector<std::pair<std::uint64_t, float>>;

}  // namespace longhaul::testing
