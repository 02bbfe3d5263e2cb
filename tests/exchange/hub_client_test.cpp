// The exchange over a hub, with its thread, and the test as the hub.
#include "longhaul/exchange/hub_client.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <thread>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/exchange/saved.h"
#include "tests/codec/checked.h"

namespace longhaul {
namespace {

constexpr std::size_t kElements = 4;
constexpr std::uint64_t kRun = 9;

ByteBuffer payload_of(float value) {
  Workers workers{1};
  std::vector<float> residual(kElements);
  const std::vector<float> update(kElements, value);
  return make_codec(parse_codec("dense/fp32").value(), {{.name = "all", .count = kElements}},
                    workers)
      ->take({.residual = residual, .increment = update, .keep_ratio = 1});
}

CheckedPayload checked(ByteBuffer bytes) {
  return testing_data::checked(std::move(bytes), kElements);
}

// Hands the ears of every stream to the test.
class EarConnector final : public Connector {
 public:
  StreamPtr open(StreamListener listener) override {
    EXPECT_TRUE(opened.push(std::move(listener)));
    return std::make_shared<AskedStream>(asked, count_++);
  }
  Mailbox<StreamListener> opened{10};
  // The number of a stream for each frame that it was asked for.
  std::shared_ptr<Mailbox<std::size_t>> asked = std::make_shared<Mailbox<std::size_t>>(1000);

 private:
  // Takes everything, and nothing comes of itself.
  class AskedStream final : public Stream {
   public:
    AskedStream(std::shared_ptr<Mailbox<std::size_t>> asked, std::size_t number)
        : asked_(std::move(asked)), number_(number) {}
    void read() override { EXPECT_TRUE(asked_->push(number_)); }
    void write(Frame /*frame*/) override {}
    void close() override {}
    [[nodiscard]] std::string peer_name() const override { return {}; }

   private:
    std::shared_ptr<Mailbox<std::size_t>> asked_;  // streams end when they want
    std::size_t number_;
  };
  std::size_t count_ = 0;
};

class HubClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    connect();
    enroll(0);
    ASSERT_TRUE(client_.first_plan(limit()).ok());
  }
  void connect(const v1::Welcome& welcome = {}) {
    control_ = next_stream();
    control_(FrameWritten{});
    Frame frame;
    *frame.mutable_welcome() = welcome;
    frame.mutable_welcome()->set_session(1);
    frame.mutable_welcome()->set_run(kRun);
    control_(frame);
    lane_ = next_stream();
    lane_(FrameWritten{});
  }
  // What is in of it is from an earlier life.
  void connect_anew(const v1::Contributed& contributed) {
    control_(StreamClosed{ErrorCode::kClosed, "broken"});
    v1::Welcome welcome;
    *welcome.mutable_contributed() = contributed;
    connect(welcome);
    enroll(5);
  }
  static Deadline limit() { return deadline_after(Seconds(20)); }
  StreamListener next_stream() { return connector_.opened.pop_until(limit()).value(); }

  void enroll(std::uint64_t from_step) {
    Frame frame;
    frame.mutable_enrolled()->mutable_from()->set_step(from_step);
    *frame.mutable_enrolled()->mutable_plan() = to_message(Plan{});
    control_(frame);
  }
  void announce(std::uint64_t step, std::optional<std::uint64_t> own) {
    Frame frame;
    frame.mutable_closed()->set_step(step);
    frame.mutable_closed()->set_way(v1::WAY_UNION);
    if (own) frame.mutable_closed()->set_own(*own);
    control_(frame);
  }
  void send_mean(std::uint64_t step, std::uint32_t restarts = 0) {
    cargo({.cargo = Cargo::kMean, .step = step, .restarts = restarts}, payload_of(5));
  }
  void close(std::uint64_t step, std::optional<std::uint64_t> own, std::uint32_t restarts = 0) {
    announce(step, own);
    send_mean(step, restarts);
  }
  void cargo(TransferId id, ByteBuffer bytes) {
    OutgoingCargo out;
    out.add(id, std::make_shared<const ByteBuffer>(std::move(bytes)));
    while (!out.is_empty()) lane_(out.next_chunk());
  }
  void restart(std::uint64_t next_round, std::uint64_t first_step, const State& snapshot = {}) {
    Frame frame;
    frame.mutable_restart()->set_bytes(to_bytes(snapshot).size());
    frame.mutable_restart()->mutable_next_round()->set_step(next_round);
    frame.mutable_restart()->set_first_step(first_step);
    control_(frame);
    cargo({.cargo = Cargo::kSnapshot, .restarts = 1}, to_bytes(snapshot));
  }
  // The client's part of a checkpoint that is saved before that step, beside the engine's blobs.
  [[nodiscard]] State checkpoint_before(std::uint64_t step, State engine = {}) const {
    engine.values = {{"version", kSavedVersion},
                     {"step", step},
                     {"next_round", std::vector<std::uint64_t>{step, 0}}};
    client_.save(engine);
    return engine;
  }
  static ClientOptions read(const State& checkpoint) {
    ClientOptions options{.elements = kElements};
    EXPECT_TRUE(stand_at(checkpoint, options).ok());
    return options;
  }
  [[nodiscard]] ClientOptions saved_before(std::uint64_t step) const {
    return read(checkpoint_before(step));
  }
  [[nodiscard]] std::optional<Attendance> attendance_saved_before(std::uint64_t step) const {
    return saved_before(step).attendance;
  }
  // Everything that was said before has been heard, as a round that closed after it is known.
  void settle(std::uint64_t spare_step, std::uint32_t restarts = 0) {
    close(spare_step, {}, restarts);
    ASSERT_TRUE(client_.collect({.step = spare_step}, limit()).ok());
  }
  void submit(std::uint64_t step, float value) {
    client_.submit(
        {.round = {.step = step}, .elements = kElements, .payload = checked(payload_of(value))});
  }

  // Waits until a stream was asked for so many frames in all.
  bool is_asked(std::size_t stream, int count) {
    while (asks_[stream] < count) {
      const std::optional<std::size_t> next = connector_.asked->pop_until(limit());
      if (!next) return false;
      ++asks_[*next];
    }
    return true;
  }

  Clock clock_;
  EarConnector connector_;
  std::array<int, 10> asks_{};
  HubClient client_{
      {.name = "me", .elements = kElements, .most_mean_bytes = 1, .silence = Seconds(60)},
      connector_,
      clock_};
  StreamListener control_;
  StreamListener lane_;
};

TEST_F(HubClientTest, ReturnsAnUpdateThatIsNotInItsMean) {
  submit(0, 1);
  close(0, {});
  EXPECT_EQ(*client_.collect({.step = 0}, limit())->returned.bytes(), payload_of(1));
  submit(1, 2);
  close(1, checked(payload_of(2)).digest());
  EXPECT_TRUE(client_.collect({.step = 1}, limit())->returned.empty());
}

// The round closed without this replica while it was still computing its gradient.
TEST_F(HubClientTest, ReturnsAnUpdateWhoseMeanCameFirst) {
  close(0, {});
  settle(1);
  submit(0, 1);
  EXPECT_EQ(*client_.collect({.step = 0}, limit())->returned.bytes(), payload_of(1));
}

TEST_F(HubClientTest, MeansThatNobodyCollectsHoldTheHubBack) {
  for (std::uint64_t step = 0; step < 5; ++step) close(step, {});
  for (int i = 0; i < 2; ++i) enroll(0);  // the last one is heard behind all chunks
  ASSERT_TRUE(is_asked(0, 9));
  EXPECT_EQ(asks_[1], 5) << "one for each of four means, and one that was on its way";
  EXPECT_TRUE(client_.collect({.step = 0}, limit()).ok());
  EXPECT_TRUE(client_.collect({.step = 1}, limit()).ok());
  EXPECT_TRUE(is_asked(1, 6)) << "there is room again";
}

TEST_F(HubClientTest, WhoWaitsForAMeanGetsItHoweverManyThereAre) {
  announce(0, {});
  for (std::uint64_t step = 1; step < 9; ++step) close(step, {});
  const std::jthread waiting([&] { EXPECT_TRUE(client_.collect({.step = 0}, limit()).ok()); });
  EXPECT_TRUE(is_asked(1, 6)) << "for the one that is waited for";
  send_mean(0);
}

TEST_F(HubClientTest, ReturnsAnUpdateIfThatOfAnEarlierLifeIsIn) {
  submit(0, 1);
  close(0, checked(payload_of(2)).digest());
  EXPECT_EQ(*client_.collect({.step = 0}, limit())->returned.bytes(), payload_of(1));
}

TEST_F(HubClientTest, WhatBelongsToTheEarlierStateEndsWithIt) {
  submit(3, 1);
  close(0, {});
  restart(3, 4);
  EXPECT_EQ(client_.collect({.step = 1}, limit()).error().code, ErrorCode::kMismatch);
  EXPECT_EQ(client_.stance(1, {.step = 1}, limit()).value(), Stance::kRestart);
  submit(4, 1);  // by a training thread that has not looked yet
  (void)client_.take_snapshot();
  EXPECT_EQ(client_.stance(4, {.step = 4}, deadline_after(Seconds(0))).error().code,
            ErrorCode::kDeadline);
  close(3, checked(payload_of(1)).digest(), 1);
  settle(4, 1);
  EXPECT_TRUE(client_.collect({.step = 3}, limit())->returned.empty());
  EXPECT_FALSE(client_.collect({.step = 0}, deadline_after(Seconds(0))).ok());
}

// A step is done again after a checkpoint: the same update is in already, another one comes back.
TEST_F(HubClientTest, CountsUpdatesThatDifferFromThoseThatAreIn) {
  submit(0, 1);
  close(0, checked(payload_of(1)).digest());
  EXPECT_TRUE(client_.collect({.step = 0}, limit())->returned.empty());
  EXPECT_EQ(client_.differing(), 0U);
  submit(1, 2);
  close(1, checked(payload_of(1)).digest());
  EXPECT_EQ(*client_.collect({.step = 1}, limit())->returned.bytes(), payload_of(2));
  EXPECT_EQ(client_.differing(), 1U);
}

TEST_F(HubClientTest, KeepsWhatACheckpointNeeds) {
  submit(0, 1);
  submit(1, 2);
  close(0, checked(payload_of(1)).digest());
  ASSERT_TRUE(client_.collect({.step = 0}, limit()).ok());
  const auto unmerged = client_.unmerged();
  ASSERT_EQ(unmerged.size(), 1U);
  EXPECT_EQ(*unmerged.at({.step = 1}).payload.bytes(), payload_of(2));
  EXPECT_EQ(client_.updates_in_flight(), 1U);
}

TEST_F(HubClientTest, ComesBackToWhereItsCheckpointStands) {
  EXPECT_EQ(client_.stance(0, {.step = 0}, limit()).value(), Stance::kTakePart);
  submit(0, 1);
  submit(1, 2);
  close(0, checked(payload_of(1)).digest());
  ASSERT_TRUE(client_.collect({.step = 0}, limit()).ok());
  const ClientOptions back = saved_before(1);
  EXPECT_FALSE(back.is_fresh);
  EXPECT_EQ(back.run, kRun);
  EXPECT_EQ(back.step, 1U);
  EXPECT_EQ(back.first_step, 0U);
  EXPECT_EQ(back.attendance, Attendance{.since = 0});
  ASSERT_EQ(back.own.size(), 1U);
  EXPECT_EQ(*back.own.at({.step = 1}).payload.bytes(), payload_of(2));
}

TEST_F(HubClientTest, ACheckpointHasTheBytesOfAnUpdateOnce) {
  submit(1, 2);
  State engine;
  engine.blobs["message.1.0"] = payload_of(2);
  const State checkpoint = checkpoint_before(1, engine);
  EXPECT_FALSE(checkpoint.blobs.contains("update.1.0"));
  EXPECT_EQ(*read(checkpoint).own.at({.step = 1}).payload.bytes(), payload_of(2));
}

TEST_F(HubClientTest, ACheckpointHasAnUpdateThatDiffersFromTheEngines) {
  submit(1, 2);
  State engine;
  engine.blobs["message.1.0"] = payload_of(3);
  const State checkpoint = checkpoint_before(1, engine);
  EXPECT_TRUE(checkpoint.blobs.contains("update.1.0"));
  EXPECT_EQ(*read(checkpoint).own.at({.step = 1}).payload.bytes(), payload_of(2));
}

TEST_F(HubClientTest, ACheckpointSaysBeforeWhichStepTheStateWasGiven) {
  State snapshot;
  snapshot.values["step"] = std::uint64_t{4};
  restart(3, 4, snapshot);
  EXPECT_EQ(client_.collect({.step = 0}, limit()).error().code, ErrorCode::kMismatch);
  (void)client_.take_snapshot();
  EXPECT_EQ(saved_before(4).first_step, 4U);
}

TEST_F(HubClientTest, TellsOnceThatTheConnectionIsLostAndOnceThatItIsBack) {
  control_(StreamClosed{ErrorCode::kClosed, "broken"});
  control_ = next_stream();
  control_(StreamClosed{ErrorCode::kClosed, "still broken"});
  connect();
  const std::vector<LinkNews> news = client_.take_link_news();
  ASSERT_EQ(news.size(), 2U);
  EXPECT_EQ(news[0]->message, "broken");
  EXPECT_FALSE(news[1]);
}

// An earlier life took part in 0, 1 and 3, and its update of step 3 is in: so it depends on them,
// and on nothing that was done in step 2.
TEST_F(HubClientTest, DoesTheStepsAgainThatAnUpdateDependsOn) {
  v1::Contributed contributed;
  contributed.mutable_round()->set_step(3);
  *contributed.mutable_attendance() = to_message(Attendance{.since = 0, .sat_out = {{2, 2}}});
  connect_anew(contributed);
  for (std::uint64_t step = 0; step < 3; ++step) close(step, {});  // whether in time or not
  close(3, checked(payload_of(1)).digest());
  close(4, {});
  settle(5);
  EXPECT_EQ(client_.stance(0, {.step = 0}, limit()).value(), Stance::kTakePart);
  EXPECT_EQ(client_.stance(1, {.step = 1}, limit()).value(), Stance::kTakePart);
  EXPECT_EQ(client_.stance(2, {.step = 2}, limit()).value(), Stance::kSitOut);
  EXPECT_EQ(client_.stance(3, {.step = 3}, limit()).value(), Stance::kTakePart);
  submit(3, 1);
  EXPECT_EQ(client_.stance(4, {.step = 4}, limit()).value(), Stance::kSitOut);
  // Those who come after it learn the same.
  const Attendance expected{.since = 0, .sat_out = {{2, 2}}};
  EXPECT_EQ(client_.unmerged().at({.step = 3}).attendance, expected);
  EXPECT_EQ(attendance_saved_before(5), (Attendance{.since = 0, .sat_out = {{2, 2}, {4, 4}}}));
  EXPECT_TRUE(client_.collect({.step = 3}, limit())->returned.empty());
  EXPECT_EQ(client_.differing(), 0U);
}

TEST_F(HubClientTest, AMeanThatIsAwaitedIsStillThereToCollect) {
  submit(0, 1);
  EXPECT_EQ(client_.await({.step = 0}, deadline_after(Seconds(0))).error().code,
            ErrorCode::kDeadline);
  close(0, checked(payload_of(1)).digest());
  EXPECT_TRUE(client_.await({.step = 0}, limit()).ok());
  EXPECT_EQ(client_.unmerged().size(), 1U) << "a checkpoint still has it";
  EXPECT_TRUE(client_.collect({.step = 0}, limit()).ok());
}

TEST_F(HubClientTest, KnowsWhyTheRunEnds) {
  EXPECT_EQ(client_.finish_cause(), FinishCause::kSteps);
  Frame frame;
  frame.mutable_finish()->set_last_step(0);
  frame.mutable_finish()->set_cause(v1::CAUSE_STOPPED);
  control_(frame);
  settle(1);
  EXPECT_EQ(client_.stance(1, {.step = 1}, limit()).value(), Stance::kFinish);
  EXPECT_EQ(client_.finish_cause(), FinishCause::kStopped);
}

TEST_F(HubClientTest, StepsBeforeAnotherStateDoNotCount) {
  EXPECT_EQ(client_.stance(0, {.step = 0}, limit()).value(), Stance::kTakePart);
  restart(5, 7);
  EXPECT_EQ(client_.collect({.step = 0}, limit()).error().code, ErrorCode::kMismatch);
  (void)client_.take_snapshot();
  enroll(7);
  EXPECT_EQ(client_.stance(7, {.step = 7}, limit()).value(), Stance::kTakePart);
  EXPECT_EQ(attendance_saved_before(8), Attendance{.since = 7});
}

}  // namespace
}  // namespace longhaul
