// How a run over the hub ends: who is waited for, and for how long.
#include <gtest/gtest.h>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_options;
using testing::HubDesk;
using testing::join_frame;

class HubEnd : public ::testing::Test {
 protected:
  static HubOptions options() {
    HubOptions options = desk_options();
    options.training.steps = 1;
    options.silence = Seconds(1000);
    return options;
  }
  void close_the_only_round() {
    for (const HubDesk::Joined& one : all_) desk_.update(one, 0, dense_payload(1));
    ASSERT_EQ(desk_.core.status().next_round, 1U);
  }
  void leave(const HubDesk::Joined& one) {
    Frame frame;
    frame.mutable_leave();
    desk_.hear(one.control, frame);
  }
  [[nodiscard]] bool is_finished_after(Seconds time) {
    desk_.advance(time);
    return desk_.core.status().is_finished;
  }

  HubDesk desk_{options()};
  std::vector<HubDesk::Joined> all_ = desk_.start();
};

TEST_F(HubEnd, ComesWhenAllHaveLeft) {
  close_the_only_round();
  leave(all_[0]);
  EXPECT_FALSE(is_finished_after(Seconds(100)));
  leave(all_[1]);
  EXPECT_TRUE(is_finished_after(Seconds(0.1)));
}

TEST_F(HubEnd, AnUpdateAfterTheLastStepIsRejected) {
  close_the_only_round();
  leave(all_[0]);
  desk_.update(all_[1], 1, dense_payload(1));
  EXPECT_EQ(desk_.core.status().rejected, 1U);
  EXPECT_EQ(desk_.core.status().next_round, 1U);
}

TEST_F(HubEnd, ComesWhenAllHaveGivenUpAfterItWasAskedTo) {
  leave(all_[0]);
  leave(all_[1]);
  EXPECT_FALSE(is_finished_after(Seconds(100))) << "they may come back";
  desk_.core.finish(v1::CAUSE_STOPPED);
  EXPECT_TRUE(is_finished_after(Seconds(0.1)));
}

TEST_F(HubEnd, EveryoneHearsWhyTheRunEnds) {
  EXPECT_EQ(all_[0].control.stream->take(Frame::kFinish)->finish().cause(), v1::CAUSE_STEPS);
  desk_.core.finish(v1::CAUSE_STOPPED);
  EXPECT_FALSE(all_[0].control.stream->take(Frame::kFinish)) << "it is the last step anyway";
  HubDesk longer([] {
    HubOptions options = HubEnd::options();
    options.training.steps = 100;
    return options;
  }());
  const std::vector<HubDesk::Joined> all = longer.start();
  EXPECT_EQ(all[0].control.stream->take(Frame::kFinish)->finish().cause(), v1::CAUSE_STEPS);
  longer.core.finish(v1::CAUSE_TARGET);
  const auto told = all[0].control.stream->take(Frame::kFinish);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->finish().last_step(), 0U);
  EXPECT_EQ(told->finish().cause(), v1::CAUSE_TARGET);
}

// Who is away comes later to the hub that goes on.
TEST_F(HubEnd, AHubThatStopsDoesNotWaitForWhoIsAway) {
  desk_.breaks(all_[0].control);
  desk_.breaks(all_[1].control);
  EXPECT_FALSE(is_finished_after(Seconds(0.1)));
  desk_.core.finish(v1::CAUSE_STOPPED);
  EXPECT_TRUE(is_finished_after(Seconds(0.1)));
}

TEST_F(HubEnd, BeforeTheStartAHubStopsAtOnce) {
  HubDesk desk(options());
  desk.core.finish(v1::CAUSE_STOPPED);
  desk.advance(Seconds(0.1));
  EXPECT_TRUE(desk.core.status().is_finished);
  EXPECT_EQ(desk.refusal(join_frame("a"))->why(), "the hub is stopping; come back later");
}

TEST_F(HubEnd, OnlyThoseWhoAreAwaitedComeToAHubThatStops) {
  HubOptions longer = options();
  longer.training.steps = 100;
  longer.training.policy.least = 2;
  longer.training.replicas = 3;
  HubDesk desk(longer);
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.breaks(all[1].control);
  desk.core.finish(v1::CAUSE_STOPPED);
  const auto refused = desk.refusal(join_frame("new"));
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->is_final());
  EXPECT_EQ(refused->why(), "the hub is stopping; come back later");
  const HubDesk::Joined back = desk.join(desk.rejoin_frame("replica-1"));
  EXPECT_EQ(back.control.stream->take(Frame::kFinish)->finish().cause(), v1::CAUSE_STOPPED);
  Frame leaves;
  leaves.mutable_leave();
  desk.hear(back.control, leaves);
  EXPECT_FALSE(desk.refusal(desk.rejoin_frame("replica-1"))->is_final()) << "it has stopped before";
}

TEST_F(HubEnd, WhoIsNewToARunThatIsDoneIsToldSo) {
  HubOptions three = options();
  three.training.replicas = 3;
  HubDesk desk(three);
  for (const HubDesk::Joined& one : desk.start()) desk.update(one, 0, dense_payload(1));
  const auto refused = desk.refusal(join_frame("new"));
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final());
  EXPECT_EQ(refused->why(), "this run is done");
}

TEST_F(HubEnd, WaitsForWhoIsAwayButNotForever) {
  close_the_only_round();
  leave(all_[0]);
  desk_.breaks(all_[1].control);
  EXPECT_FALSE(is_finished_after(Seconds(0.1)));
  EXPECT_FALSE(is_finished_after(Seconds(29)));
  EXPECT_TRUE(is_finished_after(Seconds(2)));
}

TEST_F(HubEnd, WhoComesForTheLastMeansGetsThem) {
  close_the_only_round();
  leave(all_[0]);
  desk_.breaks(all_[1].control);
  EXPECT_FALSE(is_finished_after(Seconds(20)));
  Frame again = desk_.rejoin_frame("replica-1");
  const HubDesk::Joined back = desk_.join(again);
  EXPECT_TRUE(back.control.stream->take(Frame::kClosed));
  EXPECT_FALSE(is_finished_after(Seconds(100)));
  leave(back);
  EXPECT_TRUE(is_finished_after(Seconds(0.1)));
}

// With those means it could do steps beyond the last one, which nobody else does.
TEST_F(HubEnd, WhoComesBackHearsOfTheLastStepBeforeTheMeansThatLeadThere) {
  close_the_only_round();
  desk_.breaks(all_[1].control);
  const HubDesk::Joined back = desk_.join(desk_.rejoin_frame("replica-1"));
  EXPECT_TRUE(back.control.stream->take(Frame::kFinish));
  EXPECT_TRUE(back.control.stream->take(Frame::kClosed));
  desk_.breaks(back.control);
  const HubDesk::Joined anew = desk_.join(join_frame("replica-1"));
  EXPECT_TRUE(anew.control.stream->take(Frame::kRestart));
  EXPECT_TRUE(anew.control.stream->take(Frame::kFinish));
}

TEST_F(HubEnd, WhoWentLongBeforeTheEndIsNotWaitedFor) {
  desk_.breaks(all_[1].control);
  EXPECT_FALSE(is_finished_after(Seconds(0.1)));
  desk_.advance(Seconds(31));
  desk_.update(all_[0], 0, dense_payload(1));
  leave(all_[0]);
  EXPECT_TRUE(is_finished_after(Seconds(0.1)));
}

}  // namespace
}  // namespace longhaul
