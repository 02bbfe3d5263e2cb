#include "longhaul/lab/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lab/sample_runs.h"

namespace longhaul::lab {
namespace {

using testing::HasSubstr;
using testing::Not;

const TargetOptions kTarget{.metric = Metric::kAccuracy, .value = 0.8};

RunResult reached_after(double seconds, std::uint64_t seed = 1) {
  RunResult run{.recipe = "d-sgd", .seed = seed};
  run.time_to_target = Seconds(seconds);
  run.steps_to_target = 10;
  return run;
}

RunResult missed(std::uint64_t seed = 1) {
  RunResult run{.recipe = "d-sgd", .seed = seed};
  for (const double accuracy : {0.1, 0.6, 0.72, 0.6, 0.6})
    run.evaluations.push_back({.accuracy = accuracy});
  return run;
}

TEST(Summary, TakesTheMedianOverSeedsAndKeepsTheSpread) {
  const auto all =
      summarise(kTarget, {reached_after(5, 1), reached_after(3, 2), reached_after(10, 3)});
  ASSERT_EQ(all.size(), 1U);
  ASSERT_TRUE(all[0].time_to_target_s);
  EXPECT_EQ(all[0].time_to_target_s->median, 5);
  EXPECT_EQ(all[0].time_to_target_s->least, 3);
  EXPECT_EQ(all[0].time_to_target_s->most, 10);
  EXPECT_EQ(target_text(all[0], kTarget), "5s (3s to 10s)");
}

TEST(Summary, OfAnEvenNumberTheMedianIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(spread_of({4, 1, 3, 2})->median, 2.5);
  EXPECT_EQ(spread_of({}), std::nullopt);
}

TEST(Summary, ARunThatMissedTheTargetCountsAsLaterThanAllOthers) {
  const auto all = summarise(kTarget, {reached_after(5, 1), reached_after(3, 2), missed(3)});
  ASSERT_TRUE(all[0].time_to_target_s);
  EXPECT_EQ(all[0].time_to_target_s->median, 5);
  EXPECT_EQ(target_text(all[0], kTarget), "5s (3s to never)");
}

TEST(Summary, HasNoMedianUnlessMostRunsReachedTheTarget) {
  const auto all = summarise(kTarget, {reached_after(5, 1), missed(2)});
  EXPECT_FALSE(all[0].time_to_target_s);
  EXPECT_THAT(target_text(all[0], kTarget), HasSubstr("not reached in 1 of 2"));
}

TEST(Summary, SaysThatTheTargetWasNotReachedAndTheBestMeanOfThree) {
  const auto all = summarise(kTarget, {missed()});
  EXPECT_EQ(target_text(all[0], kTarget), "not reached (best accuracy 0.64)");
}

TEST(Summary, TheBestLossIsTheLeast) {
  const TargetOptions target{.metric = Metric::kLoss, .value = 0.5};
  RunResult run{.recipe = "d-sgd"};
  for (const double loss : {3.0, 2.0, 1.0, 2.0, 3.0}) run.evaluations.push_back({.loss = loss});
  EXPECT_NEAR(*summarise(target, {run})[0].best_value, 5.0 / 3, 1e-12);
}

TEST(Summary, DivergedRunsSaySo) {
  RunResult run{.recipe = "d-sgd", .status = RunStatus::kDiverged};
  EXPECT_EQ(target_text(summarise(kTarget, {run})[0], kTarget), "diverged");
}

TEST(Summary, MarksTheBestSettingOfARecipe) {
  RunResult slow = reached_after(5);
  slow.settings = "train.lr=0.01";
  RunResult fast = reached_after(3);
  fast.settings = "train.lr=0.1";
  RunResult none = missed();
  none.settings = "train.lr=1";
  const auto all = summarise(kTarget, {slow, fast, none});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_FALSE(all[0].is_best);
  EXPECT_TRUE(all[1].is_best);
  EXPECT_FALSE(all[2].is_best);
}

TEST(Summary, SpeedUpIsAgainstDsgd) {
  RunResult other = reached_after(2);
  other.recipe = "dga";
  const auto all = summarise(kTarget, {reached_after(5), other});
  EXPECT_DOUBLE_EQ(*speed_up(all[1], all), 2.5);
  const auto alone = summarise(kTarget, {other});
  EXPECT_EQ(speed_up(alone[0], alone), std::nullopt);
}

TEST(SummaryTable, HasOneAlignedRowPerRecipe) {
  const std::string table = summary_table(
      sample_scenario(), {sample_run({.recipe = "d-sgd"}),
                          sample_run({.recipe = "dd-ef-sgd", .step_time_s = 0.06, .best = 0.7})});
  EXPECT_THAT(table, HasSubstr("target accuracy 0.8"));
  EXPECT_THAT(table, HasSubstr("\nd-sgd "));
  EXPECT_THAT(table, HasSubstr("\ndd-ef-sgd  not reached (best accuracy 0."));
  EXPECT_THAT(table, Not(HasSubstr("seeds")));
}

}  // namespace
}  // namespace longhaul::lab
