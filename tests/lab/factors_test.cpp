#include "longhaul/lab/factors.h"

#include <gtest/gtest.h>

namespace longhaul::lab {
namespace {

const TargetOptions kGoal{.metric = Metric::kAccuracy, .value = 0.8};

RunResult at_target(const std::string& recipe, double seconds, std::size_t steps,
                    std::uint64_t seed = 1) {
  RunResult run{.recipe = recipe, .seed = seed};
  run.time_to_target = Seconds(seconds);
  run.steps_to_target = steps;
  return run;
}

TEST(Factors, OfTimeAndOfStepsAreThoseOfTheMedians) {
  const std::vector<RunResult> runs{at_target("d-sgd", 659, 478), at_target("auto", 21.2, 353)};
  const std::vector<Summary> all = summarise(kGoal, runs);
  const std::optional<double> time = time_factor(all.at(1), all.at(0));
  const std::optional<double> steps = steps_factor(all.at(1), all.at(0));
  ASSERT_TRUE(time && steps);
  EXPECT_NEAR(*time, 31.08, 0.01);
  EXPECT_NEAR(*steps, 1.354, 0.001);
  EXPECT_NEAR(*time / *steps, 22.96, 0.01);
  // One seed says nothing of the others.
  EXPECT_FALSE(steps_factor_by_seed(all.at(1), all.at(0), runs));
}

TEST(Factors, TellHowStepsVaryWithTheSeed) {
  const std::vector<RunResult> runs{at_target("d-sgd", 100, 100, 1), at_target("auto", 10, 80, 1),
                                    at_target("d-sgd", 100, 110, 2), at_target("auto", 10, 120, 2)};
  const std::vector<Summary> all = summarise(kGoal, runs);
  const std::optional<Spread> by_seed = steps_factor_by_seed(all.at(1), all.at(0), runs);
  ASSERT_TRUE(by_seed);
  EXPECT_DOUBLE_EQ(by_seed->least, 110.0 / 120);
  EXPECT_DOUBLE_EQ(by_seed->most, 100.0 / 80);
}

TEST(Factors, NeedBothAtTheTarget) {
  for (const std::vector<RunResult>& runs :
       {std::vector{at_target("d-sgd", 100, 100), RunResult{.recipe = "auto"}},
        std::vector{RunResult{.recipe = "d-sgd"}, at_target("auto", 10, 80)}}) {
    const std::vector<Summary> all = summarise(kGoal, runs);
    EXPECT_FALSE(time_factor(all.at(1), all.at(0)));
    EXPECT_FALSE(steps_factor(all.at(1), all.at(0)));
  }
}

TEST(ComputingShare, IsTheMeanOverReplicasNotThatOfTheSlowest) {
  RunResult run;
  run.steps = 10;
  run.efficiency = 1;  // of the slowest
  run.spent = {{.computing = Seconds(4), .others = Seconds(4)},
               {.computing = Seconds(4), .others = Seconds(4)},
               {.computing = Seconds(8)}};
  ASSERT_TRUE(computing_share(run));
  EXPECT_DOUBLE_EQ(*computing_share(run), 2.0 / 3);
  EXPECT_DOUBLE_EQ(summarise(kGoal, {run})[0].computing->median, 2.0 / 3);
}

TEST(MeanStep, IsTheTimeOfOneStepOverReplicas) {
  RunResult run;
  run.steps = 4;
  run.spent = {{.computing = Seconds(4), .sending = Seconds(8), .latency = Seconds(2)},
               {.computing = Seconds(8), .sending = Seconds(4), .others = Seconds(2)}};
  EXPECT_DOUBLE_EQ(mean_step(run)->computing.count(), 1.5);
  EXPECT_DOUBLE_EQ(mean_step(run)->total().count(), 3.5);
  EXPECT_DOUBLE_EQ(mean_step_of(run, 1)->computing.count(), 2);
}

TEST(MeanStep, IsNotInventedWhereNothingIsKnown) {
  EXPECT_FALSE(mean_step(RunResult{}));
  EXPECT_FALSE(computing_share(RunResult{}));
}

}  // namespace
}  // namespace longhaul::lab
