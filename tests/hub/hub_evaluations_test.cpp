// Who scores the shared model, which scores are taken, and how a run ends at its target.
#include <gtest/gtest.h>

#include <limits>

#include "longhaul/hub/status_report.h"
#include "tests/hub/hub_desk.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_options;
using testing::HubDesk;

HubOptions evaluating(std::size_t replicas = 3) {
  HubOptions options = desk_options("d-sgd", replicas);
  options.training.steps = 100;
  options.training.engine.lr.steps = 100;
  options.silence = Seconds(1000);
  options.evaluates = true;
  options.target = {.metric = Metric::kAccuracy, .value = 0.8};
  options.ends_at_target = true;
  return options;
}

v1::Evaluation scored(std::uint64_t step, double accuracy) {
  v1::Evaluation evaluation;
  evaluation.set_step(step);
  evaluation.set_loss(1 - accuracy);
  evaluation.set_accuracy(accuracy);
  evaluation.set_samples(200);
  return evaluation;
}

class HubEvaluations : public ::testing::Test {
 protected:
  void evaluates(const HubDesk::Joined& from, const v1::Evaluation& evaluation) {
    Frame frame;
    *frame.mutable_evaluation() = evaluation;
    desk_.hear(from.control, std::move(frame));
  }
  void close_rounds_until(std::uint64_t step) {
    for (; next_ < step; ++next_) {
      for (const HubDesk::Joined& one : all_) {
        if (!one.control.is_gone()) desk_.update(one, next_, dense_payload(0.01F));
      }
    }
    ASSERT_EQ(desk_.core.status().next_round, step);
  }
  void leave(const HubDesk::Joined& one) {
    Frame frame;
    frame.mutable_leave();
    desk_.hear(one.control, frame);
  }
  // What it was last told of its duty.
  static std::optional<bool> duty_of(const HubDesk::Joined& one) {
    std::optional<bool> duty;
    while (const auto frame = one.control.stream->take(Frame::kEvaluate))
      duty = frame->evaluate().is_on();
    return duty;
  }
  static std::optional<v1::Finish> last_finish_of(const HubDesk::Joined& one) {
    std::optional<v1::Finish> finish;
    while (const auto frame = one.control.stream->take(Frame::kFinish)) finish = frame->finish();
    return finish;
  }

  HubDesk desk_{evaluating()};
  std::vector<HubDesk::Joined> all_ = desk_.start(3);
  std::uint64_t next_ = 0;
};

TEST_F(HubEvaluations, TheLowestSlotScoresAndNobodyElse) {
  EXPECT_EQ(duty_of(all_[0]), true);
  EXPECT_EQ(duty_of(all_[1]), std::nullopt);
  EXPECT_EQ(duty_of(all_[2]), std::nullopt);
}

TEST_F(HubEvaluations, TheDutyPassesOnWhenItsReplicaDiesAndComesBackWithIt) {
  close_rounds_until(2);
  desk_.breaks(all_[0].control);
  EXPECT_EQ(duty_of(all_[1]), true);
  evaluates(all_[1], scored(2, 0.3));
  EXPECT_EQ(desk_.core.status().evaluation->accuracy(), 0.3);
  leave(all_[1]);
  EXPECT_EQ(duty_of(all_[2]), true);
  const HubDesk::Joined back = desk_.join(desk_.rejoin_frame("replica-0", 2));
  EXPECT_EQ(duty_of(back), true);
  EXPECT_EQ(duty_of(all_[2]), false);
}

TEST_F(HubEvaluations, OthersHearOfAScore) {
  close_rounds_until(2);
  evaluates(all_[0], scored(2, 0.5));
  EXPECT_FALSE(all_[0].control.stream->take(Frame::kEvaluation));
  const auto heard = all_[2].control.stream->take(Frame::kEvaluation);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->evaluation().accuracy(), 0.5);
  ASSERT_EQ(desk_.evaluations.size(), 1U);
  EXPECT_EQ(desk_.evaluations[0].step(), 2U);
}

TEST_F(HubEvaluations, AScoreOfAReplicaWithoutTheDutyIsNotTaken) {
  close_rounds_until(2);
  evaluates(all_[1], scored(2, 0.9));
  EXPECT_FALSE(desk_.core.status().evaluation);
  EXPECT_FALSE(all_[1].control.is_gone());
}

TEST_F(HubEvaluations, OneWhoseDutyHasPassedOnMayStillTellWhatItWasScoring) {
  desk_.breaks(all_[0].control);
  close_rounds_until(2);
  const HubDesk::Joined back = desk_.join(desk_.rejoin_frame("replica-0", 0));
  ASSERT_EQ(duty_of(back), true);
  evaluates(all_[1], scored(2, 0.4));
  EXPECT_TRUE(desk_.core.status().evaluation);
}

TEST_F(HubEvaluations, WhatCannotBeIsRejected) {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<v1::Evaluation> wrong(7, scored(1, 0.5));
  wrong[0].set_step(3);  // the model has done 2
  wrong[1].set_loss(nan);
  wrong[2].set_loss(-kEndless);
  wrong[3].set_accuracy(1.01);
  wrong[4].set_accuracy(nan);
  wrong[5].set_samples(0);
  wrong[6].set_is_closing(true);
  for (const v1::Evaluation& evaluation : wrong) {
    HubDesk desk(evaluating(1));
    const std::vector<HubDesk::Joined> all = desk.start(1);
    for (const std::uint64_t step : {0U, 1U}) desk.update(all[0], step, dense_payload(1));
    Frame frame;
    *frame.mutable_evaluation() = evaluation;
    desk.hear(all[0].control, std::move(frame));
    EXPECT_FALSE(desk.core.status().evaluation) << evaluation.DebugString();
    EXPECT_EQ(desk.core.status().rejected, 1U) << evaluation.DebugString();
    EXPECT_TRUE(all[0].control.is_gone());
  }
}

TEST_F(HubEvaluations, TheRunEndsWhenTheMeanOfThreeReachesTheTarget) {
  const auto finish_before = last_finish_of(all_[2]);
  EXPECT_EQ(finish_before->last_step(), 99U);
  EXPECT_EQ(finish_before->cause(), v1::CAUSE_STEPS);
  std::uint64_t step = 0;
  for (const double accuracy : {0.1, 0.5, 0.99, 0.75}) {  // the mean of the last three is 0.747
    close_rounds_until(++step);
    evaluates(all_[0], scored(step, accuracy));
    EXPECT_FALSE(last_finish_of(all_[2]));
  }
  EXPECT_NEAR(*desk_.core.status().smoothed, (0.5 + 0.99 + 0.75) / 3, 1e-12);
  close_rounds_until(6);
  evaluates(all_[0], scored(5, 0.7));
  const auto finish = last_finish_of(all_[2]);
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->cause(), v1::CAUSE_TARGET);
  EXPECT_EQ(finish->last_step(), 6U) << "the step that everyone is in";
  EXPECT_EQ(desk_.core.status().steps, 7U);
  close_rounds_until(7);
  for (const HubDesk::Joined& one : all_) leave(one);
  desk_.advance(Seconds(0.1));
  EXPECT_TRUE(desk_.core.status().is_finished);
  EXPECT_EQ(desk_.core.status().digest,
            digest_text(desk_.core.training()->keeper()->model().shared()));
}

TEST_F(HubEvaluations, TheClosingScoreIsTakenOnceTheLastRoundHasClosed) {
  close_rounds_until(1);
  evaluates(all_[0], scored(1, 0.9));
  close_rounds_until(100);
  v1::Evaluation closing = scored(100, 0.6);
  closing.set_is_closing(true);
  closing.set_samples(10'000);
  ASSERT_TRUE(duty_of(all_[0]));
  evaluates(all_[0], closing);
  EXPECT_EQ(desk_.core.status().evaluation->samples(), 10'000U);
  leave(all_[0]);
  EXPECT_EQ(duty_of(all_[1]), std::nullopt) << "there is nothing left to score";
}

TEST_F(HubEvaluations, OneThatDiesBeforeTheClosingScoreLeavesItToTheNext) {
  close_rounds_until(100);
  desk_.breaks(all_[0].control);
  EXPECT_EQ(duty_of(all_[1]), true);
}

TEST(HubTarget, CountsForNothingIfTheRunIsToDoAllItsSteps) {
  HubOptions options = evaluating(1);
  options.ends_at_target = false;
  HubDesk desk(std::move(options));
  const std::vector<HubDesk::Joined> all = desk.start(1);
  for (std::uint64_t step = 0; step < 5; ++step) {
    desk.update(all[0], step, dense_payload(0.01F));
    Frame frame;
    *frame.mutable_evaluation() = scored(step + 1, 0.99);
    desk.hear(all[0].control, std::move(frame));
  }
  EXPECT_EQ(desk.core.status().steps, 100U);
  const v1::StatusReport report = report_of(desk.core.status(), {});
  EXPECT_EQ(report.evaluation().step(), 5U);
  EXPECT_NEAR(report.smoothed(), 0.99, 1e-12);
  EXPECT_EQ(report.target_value(), 0.8);
}

TEST(HubTarget, AHubThatIsKilledAfterItKnowsWhereTheRunEnds) {
  const std::filesystem::path directory = testing::test_directory();
  std::filesystem::remove_all(directory);
  HubOptions options = evaluating(1);
  options.training.directory = directory;
  {
    HubDesk desk(options);
    const std::vector<HubDesk::Joined> all = desk.start(1);
    for (std::uint64_t step = 0; step < 3; ++step) {
      desk.update(all[0], step, dense_payload(0.01F));
      Frame frame;
      *frame.mutable_evaluation() = scored(step + 1, 0.99);
      desk.hear(all[0].control, std::move(frame));
    }
    ASSERT_EQ(desk.core.status().steps, 4U);
  }
  HubDesk again(options);
  ASSERT_TRUE(again.core.resume().ok());
  EXPECT_EQ(again.core.status().steps, 4U);
  EXPECT_EQ(again.core.status().cause, v1::CAUSE_TARGET);
  const HubDesk::Joined back = again.join(again.rejoin_frame("replica-0", 3));
  const auto finish = back.control.stream->take(Frame::kFinish);
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->finish().last_step(), 3U);
  EXPECT_EQ(finish->finish().cause(), v1::CAUSE_TARGET);
}

TEST(HubTarget, StatusTellsTheRateAndTheTimeThatIsLeft) {
  HubDesk desk(evaluating(1));
  const std::vector<HubDesk::Joined> all = desk.start(1);
  desk.advance(Seconds(0.1));
  for (std::uint64_t step = 0; step < 20; ++step) desk.update(all[0], step, dense_payload(0.01F));
  desk.advance(Seconds(2));
  EXPECT_DOUBLE_EQ(desk.core.status().steps_per_s, 10);
  EXPECT_DOUBLE_EQ(desk.core.status().left.count(), 8);
  EXPECT_EQ(desk.core.status().step, 20U);
}

}  // namespace
}  // namespace longhaul
