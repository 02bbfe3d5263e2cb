// The hub answers while work that grows with the model is under way.
#include <gtest/gtest.h>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_options;
using testing::HubDesk;
using testing::join_frame;

HubOptions setup_of_four_with_two() {
  HubOptions options = desk_options("d-sgd", 4);
  options.start_with = 2;
  return options;
}

class BusyHubTest : public ::testing::Test {
 protected:
  void SetUp() override { desk_.errands.is_held = true; }
  void do_all() {
    while (!desk_.errands.waiting.empty()) desk_.end_errand();
  }
  // Both have submitted, and the round is being closed.
  void close_a_round() {
    for (const HubDesk::Joined& one : all_) desk_.update(one, 0, dense_payload(1));
    desk_.end_errand();
    desk_.end_errand();
    ASSERT_TRUE(desk_.core.training()->is_closing());
  }
  std::optional<std::uint64_t> pong(const HubDesk::Joined& to) {
    Frame ping;
    ping.mutable_ping()->set_id(7);
    desk_.hear(to.control, ping);
    const auto frame = to.control.stream->take(Frame::kPong);
    return frame ? std::optional(frame->pong().id()) : std::nullopt;
  }

  HubDesk desk_{setup_of_four_with_two()};
  std::vector<HubDesk::Joined> all_ = desk_.start();
};

TEST_F(BusyHubTest, AnswersPingsWhileARoundCloses) {
  close_a_round();
  EXPECT_EQ(pong(all_[0]), 7U);
  EXPECT_EQ(desk_.rounds.size(), 1U) << "the start: nobody is told before the journal has it";
  EXPECT_FALSE(all_[0].control.stream->take(Frame::kClosed));
  desk_.end_errand();
  EXPECT_EQ(desk_.rounds.size(), 2U);
  EXPECT_TRUE(all_[0].control.stream->take(Frame::kClosed));
  EXPECT_TRUE(all_[1].control.stream->take(Frame::kClosed));
}

TEST_F(BusyHubTest, AReplicaThatComesBackHearsOfItsUpdateInTheRoundThatCloses) {
  close_a_round();
  desk_.breaks(all_[0].control);
  const HubDesk::Joined back = desk_.join(desk_.rejoin_frame("replica-0"));
  ASSERT_TRUE(back.welcome.has_contributed());
  EXPECT_EQ(back.welcome.contributed().round().step(), 0U);
  do_all();
  ASSERT_EQ(desk_.rounds.size(), 2U);
  EXPECT_EQ(testing::slots_in(desk_.rounds.back()), (std::vector<std::size_t>{0, 1}));
}

TEST_F(BusyHubTest, TheRunEndsBehindTheRoundThatCloses) {
  close_a_round();
  desk_.core.finish(v1::CAUSE_STEPS);
  EXPECT_FALSE(all_[0].control.stream->take(Frame::kFinish));
  do_all();
  const auto finish = all_[0].control.stream->take(Frame::kFinish);
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->finish().last_step(), 1U) << "the model stands there";
}

TEST_F(BusyHubTest, OneSnapshotIsForAllWhoWait) {
  close_a_round();
  desk_.end_errand();
  const HubDesk::Joined third = desk_.join(join_frame("replica-2"));
  const HubDesk::Joined fourth = desk_.join(join_frame("replica-3"));
  EXPECT_EQ(desk_.errands.waiting.size(), 1U);
  EXPECT_EQ(pong(third), 7U);
  EXPECT_FALSE(third.control.stream->take(Frame::kRestart));
  desk_.end_errand();
  EXPECT_TRUE(third.control.stream->take(Frame::kRestart));
  EXPECT_TRUE(fourth.control.stream->take(Frame::kRestart));
}

TEST_F(BusyHubTest, ASnapshotOnItsWayServesTheNextOneToo) {
  close_a_round();
  desk_.end_errand();
  desk_.holds_lanes = true;
  const HubDesk::Joined third = desk_.join(join_frame("replica-2"));
  desk_.end_errand();
  ASSERT_TRUE(third.control.stream->take(Frame::kRestart));
  v1::Report report;
  report.set_restarts(1);
  report.set_digest(1);  // not that of the shared model before step 0
  desk_.report(third, report);
  desk_.end_errand();
  ASSERT_TRUE(third.control.stream->take(Frame::kRestart)) << "it waits behind the first one";
  const HubDesk::Joined fourth = desk_.join(join_frame("replica-3"));
  EXPECT_TRUE(fourth.control.stream->take(Frame::kRestart));
  EXPECT_TRUE(desk_.errands.waiting.empty());
}

TEST_F(BusyHubTest, WhatAReplicaSentBeforeItWentIsNotSubmittedAfterwards) {
  desk_.update(all_[0], 0, dense_payload(1));
  desk_.update(all_[1], 0, dense_payload(1));
  desk_.breaks(all_[0].control);
  do_all();
  ASSERT_EQ(desk_.rounds.size(), 2U);
  EXPECT_EQ(testing::slots_in(desk_.rounds.back()), (std::vector<std::size_t>{1}));
}

TEST_F(BusyHubTest, AReplicaWhoseUpdatesWaitIsHeldBack) {
  const int before = all_[0].lane.stream->reads;
  for (int i = 0; i < 5; ++i) desk_.update(all_[0], 0, dense_payload(1));
  EXPECT_EQ(all_[0].lane.stream->reads, before + 4) << "what comes next stays with the replica";
  desk_.end_errand();
  desk_.end_errand();
  EXPECT_EQ(all_[0].lane.stream->reads, before + 5);
}

TEST(HubStart, IsAnErrandThatNobodyWaitsFor) {
  HubDesk desk;
  desk.errands.is_held = true;
  const HubDesk::Joined first = desk.join(join_frame("replica-0"));
  const HubDesk::Joined second = desk.join(join_frame("replica-1"));
  desk.send_model(first);
  desk.send_model(first);  // nobody has asked for it twice
  ASSERT_EQ(desk.errands.waiting.size(), 1U);
  desk.end_errand();
  ASSERT_EQ(desk.errands.waiting.size(), 1U) << "the start";
  desk.advance(Seconds(1));
  EXPECT_FALSE(desk.core.status().is_started);
  desk.breaks(second.control);
  desk.advance(Seconds(1));
  desk.end_errand();
  EXPECT_TRUE(desk.core.status().is_started);
  EXPECT_TRUE(first.control.stream->take(Frame::kEnrolled));
}

TEST(HubStart, TheLogSaysHowFarALargeModelIs) {
  constexpr std::size_t kManyElements = 10'000;
  ::testing::internal::CaptureStderr();
  HubOptions options = desk_options();
  options.training.engine.layers = {{.name = "all", .count = kManyElements}};
  HubDesk desk(std::move(options), LogLevel::kInfo);
  Frame join = join_frame("replica-0");
  join.mutable_join()->set_elements(kManyElements);
  const HubDesk::Joined first = desk.join(join);
  OutgoingCargo cargo;
  cargo.add({.cargo = Cargo::kSnapshot}, std::make_shared<const ByteBuffer>(40'000));
  desk.hear(first.lane, cargo.next_chunk(4000));
  for (int i = 0; i < 12; ++i) {
    Frame ping;
    ping.mutable_ping();
    desk.hear(first.control, ping);
    desk.advance(Seconds(1));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("replica-0 sends the first model: 2.441KiB of 39.06KiB"), std::string::npos)
      << log;
}

}  // namespace
}  // namespace longhaul
