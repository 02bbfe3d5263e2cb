// Replicas that come back, killed or cut off: what is in of them, and what they are given.
#include <gtest/gtest.h>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_options;
using testing::HubDesk;
using testing::join_frame;
using testing::slots_in;

v1::Report loaded_report(std::uint64_t step, std::uint32_t restarts) {
  v1::Report report;
  report.set_step(step);
  report.set_restarts(restarts);
  return report;
}

// A replica that was killed and starts anew while its earlier updates are still in open rounds.
class HubCoreLives : public ::testing::Test {
 protected:
  void SetUp() override {
    all_ = desk_.start();
    for (std::uint64_t step = 0; step < 3; ++step) desk_.update(all_[0], step, dense_payload(1));
    desk_.update(all_[1], 0, dense_payload(2));
    desk_.breaks(all_[0].control);
    anew_ = desk_.join(join_frame("replica-0"));
    const auto restart = anew_.control.stream->take(Frame::kRestart);
    ASSERT_TRUE(restart);
    first_step_ = restart->restart().first_step();
    EXPECT_EQ(restart->restart().next_round().step(), 1U);
    EXPECT_EQ(first_step_, 3U);  // two steps of delay
  }
  HubDesk desk_{desk_options("dd-sgd")};
  std::vector<HubDesk::Joined> all_;
  HubDesk::Joined anew_;
  std::uint64_t first_step_ = 0;
};

TEST_F(HubCoreLives, IsAMemberOnceItReportsTheStateThatItWasGiven) {
  desk_.report(anew_, loaded_report(first_step_, 0));  // of the state that is gone
  EXPECT_FALSE(anew_.control.stream->take(Frame::kEnrolled));
  desk_.report(anew_, loaded_report(first_step_, 1));
  const auto enrolled = anew_.control.stream->take(Frame::kEnrolled);
  ASSERT_TRUE(enrolled);
  EXPECT_EQ(enrolled->enrolled().from().step(), first_step_);
}

// With a checkpoint from before the hub's state replaced its own, it cannot do again what it did.
TEST_F(HubCoreLives, DoesNotGoOnFromBeforeItsStateWasReplaced) {
  desk_.report(anew_, loaded_report(first_step_, 1));
  desk_.breaks(anew_.control);
  const auto untouched = desk_.join(desk_.rejoin_frame("replica-0"));
  EXPECT_FALSE(untouched.control.stream->take(Frame::kRestart)) << "nothing is in of that state";
  desk_.breaks(untouched.control);
  anew_ = desk_.join(join_frame("replica-0"));
  desk_.report(anew_, loaded_report(first_step_, 1));
  desk_.update(anew_, first_step_, dense_payload(7), 1, {.since = first_step_});
  desk_.breaks(anew_.control);
  Frame frame = desk_.rejoin_frame("replica-0");
  frame.mutable_join()->set_step(first_step_ - 1);
  const auto back = desk_.join(frame);
  EXPECT_TRUE(back.control.stream->take(Frame::kRestart));
  desk_.breaks(back.control);
  frame.mutable_join()->set_step(first_step_);
  EXPECT_FALSE(desk_.join(frame).control.stream->take(Frame::kRestart));
}

TEST_F(HubCoreLives, UpdatesOfTheEarlierStateAreNotTaken) {
  desk_.report(anew_, loaded_report(first_step_, 1));
  desk_.update(anew_, first_step_, dense_payload(7), 0);
  for (std::uint64_t step = 1; step <= 3; ++step) desk_.update(all_[1], step, dense_payload(2));
  EXPECT_EQ(desk_.core.status().next_round, first_step_);
  desk_.update(anew_, first_step_, dense_payload(8), 1);
  EXPECT_EQ(desk_.core.status().next_round, first_step_ + 1);
}

TEST_F(HubCoreLives, WhatTheEarlierLifeSentIsInAndNotTakenForItsOwn) {
  for (std::uint64_t step = 1; step < 3; ++step) {
    desk_.update(all_[1], step, dense_payload(2));
    const auto closed = anew_.control.stream->take(Frame::kClosed);
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->closed().step(), step);
    EXPECT_EQ(closed->closed().own(), testing::checked_payload(1).digest());
    EXPECT_EQ(closed->closed().way(), v1::WAY_UNION);  // it does not have that payload
    EXPECT_EQ(slots_in(desk_.rounds.back()), (std::vector<std::size_t>{0, 1}));
  }
}

TEST_F(HubCoreLives, AReplicaThatConnectsAnewTakesPartFromTheStepOfItsStateOn) {
  desk_.breaks(anew_.lane);
  Frame again = desk_.rejoin_frame("replica-0", 1);
  again.mutable_join()->set_first_step(first_step_);
  const HubDesk::Joined back = desk_.join(again);
  const auto enrolled = back.control.stream->take(Frame::kEnrolled);
  ASSERT_TRUE(enrolled);
  EXPECT_EQ(enrolled->enrolled().from().step(), first_step_);
  desk_.update(all_[1], 1, dense_payload(2));
  EXPECT_EQ(desk_.core.status().next_round, 2U);
}

TEST_F(HubCoreLives, NobodyIsFurtherThanTheModel) {
  desk_.breaks(anew_.lane);
  Frame again = desk_.rejoin_frame("replica-0", 1);
  again.mutable_join()->set_first_step(1'000'000);
  desk_.breaks(all_[1].control);
  const HubDesk::Joined back = desk_.join(again);
  EXPECT_LE(desk_.core.status().next_round, 3U);
}

TEST_F(HubCoreLives, RoundsThatNobodyCanFillCloseWhenAllStartAnew) {
  desk_.breaks(all_[1].control);
  desk_.report(anew_, loaded_report(first_step_, 1));
  EXPECT_EQ(desk_.core.status().next_round, first_step_);
  EXPECT_EQ(slots_in(desk_.rounds.back()), std::vector<std::size_t>{0});
}

// Closed or not: it may come back before the others have submitted.
TEST(HubLives, WhoComesBackIsToldWhatIsInOfIt) {
  HubDesk desk(desk_options("dd-sgd"));
  auto all = desk.start();
  desk.update(all[0], 0, dense_payload(1));
  desk.update(all[1], 0, dense_payload(2));
  desk.breaks(all[0].control);
  auto back = desk.join(desk.rejoin_frame("replica-0"));
  EXPECT_EQ(back.welcome.contributed().round().step(), 0U);
  const Attendance attendance{.since = 0, .sat_out = {{1, 1}}};
  desk.update(back, 2, dense_payload(3), 0, attendance);  // that of step 1 is lost
  desk.breaks(back.control);
  desk.update(all[1], 1, dense_payload(2));
  back = desk.join(desk.rejoin_frame("replica-0", 1));
  EXPECT_EQ(back.welcome.contributed().round().step(), 2U);
  EXPECT_EQ(attendance_from(back.welcome.contributed().attendance(), 2).value(), attendance);
  desk.breaks(back.control);
  desk.update(all[1], 2, dense_payload(2));
  EXPECT_EQ(slots_in(desk.rounds.back()), (std::vector<std::size_t>{0, 1}));
  back = desk.join(desk.rejoin_frame("replica-0", 1));
  EXPECT_EQ(attendance_from(back.welcome.contributed().attendance(), 2).value(), attendance);
  desk.breaks(back.control);
  EXPECT_FALSE(desk.join(desk.rejoin_frame("replica-0", 3)).welcome.has_contributed());
}

TEST(HubLives, AResubmissionIsInOnce) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.update(all[0], 0, dense_payload(1));
  desk.breaks(all[0].lane);  // it cannot know that all of it arrived
  Frame again = desk.rejoin_frame("replica-0");
  const HubDesk::Joined back = desk.join(again);
  desk.update(back, 0, dense_payload(1));
  desk.update(all[1], 0, dense_payload(2));
  ASSERT_EQ(desk.rounds.size(), 2U);
  EXPECT_EQ(slots_in(desk.rounds[1]), (std::vector<std::size_t>{0, 1}));
  const auto closed = back.control.stream->take(Frame::kClosed);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->closed().own(), testing::checked_payload(1).digest());
}

TEST(HubLives, WhoIsSlowerThanTheJournalForgetsGetsASnapshot) {
  HubOptions options = desk_options();
  options.training.journal.rounds = 6;
  HubDesk desk(std::move(options));
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.breaks(all[0].control);
  for (std::uint64_t step = 0; step < 6; ++step) desk.update(all[1], step, dense_payload(1));
  Frame again = desk.rejoin_frame("replica-0");
  desk.holds_lanes = true;
  const HubDesk::Joined back = desk.join(again);
  for (std::uint64_t step = 6; step < 30; ++step) desk.update(all[1], step, dense_payload(1));
  EXPECT_EQ(desk.core.status().next_round, 30U);
  EXPECT_FALSE(back.control.stream->take(Frame::kRestart));
  back.lane.stream->is_held = false;
  desk.advance(Seconds(0.1));
  EXPECT_TRUE(back.control.stream->take(Frame::kRestart));
  desk.report(back, loaded_report(30, 1));
  EXPECT_TRUE(back.control.stream->take(Frame::kEnrolled));
}

}  // namespace
}  // namespace longhaul
