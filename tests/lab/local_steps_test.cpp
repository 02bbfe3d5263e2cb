// Recipes with local steps in the lab: what a period costs, and which settings fit together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "longhaul/job/job.h"
#include "longhaul/lab/run.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::lab {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPeriodElements = 4000;
constexpr double kPeriodDenseBytes = 4.0 * kPeriodElements;
constexpr Seconds kPeriodStep(0.05);

Scenario period_scenario(double alpha, double beta) {
  Scenario scenario;
  scenario.train.steps = 600;
  scenario.train.lr = 1e-4;
  scenario.eval.every = 1'000'000;
  scenario.target.value = 2;
  for (int i = 0; i < 3; ++i) {
    ReplicaOptions replica;
    replica.step_time = kPeriodStep;
    replica.link.up = {.bytes_per_second = alpha * kPeriodDenseBytes / kPeriodStep.count()};
    replica.link.down = replica.link.up;
    replica.link.latency = kPeriodStep * beta / 2;
    scenario.replicas.push_back(replica);
  }
  return scenario;
}

RunResult run_of_periods(const Scenario& scenario, const std::string& recipe) {
  longhaul::testing::QuadraticWorkload workload(kPeriodElements);
  Workers workers(1);
  return run(scenario, {.recipe = recipe}, workload, workers).value();
}

// Time of a period: computing, the lines, or what a loop lasts beyond the steps that hide it,
// spread over the rounds that are on their way.
Seconds period_by_formula(const Scenario& scenario, const RunResult& run) {
  const LinkOptions& link = scenario.replicas[0].link;
  const double rounds = static_cast<double>(run.steps) / run.plan.period_steps * 3;
  const Seconds up(static_cast<double>(run.bytes_up) / rounds / link.up.bytes_per_second);
  const Seconds down(static_cast<double>(run.bytes_down) / rounds / link.down.bytes_per_second);
  const Seconds exposed = 2 * link.latency + up + down - kPeriodStep * run.plan.delay_steps;
  const int on_their_way = run.plan.delay_steps / run.plan.period_steps + 1;
  return std::max({kPeriodStep * run.plan.period_steps, up, down,
                   kPeriodStep * run.plan.period_steps + exposed / on_their_way});
}

TEST(LocalStepsInTheLab, TakeTheTimeThatTheFormulaSays) {
  for (const double alpha : {0.05, 0.3, 2.0}) {
    for (const double beta : {0.5, 4.3}) {
      const Scenario scenario = period_scenario(alpha, beta);
      for (const char* delay : {"0", "3", "6", "12"}) {
        const std::string recipe =
            "local-sgd:codec=random_k/bf16:keep_ratio=0.2:period_steps=6:delay_steps=";
        const RunResult run = run_of_periods(scenario, recipe + delay);
        const Seconds expected = period_by_formula(scenario, run) / run.plan.period_steps;
        EXPECT_NEAR(run.step_time / expected, 1.0, 0.01)
            << "α " << alpha << " β " << beta << " τ " << delay << ": measured "
            << run.step_time.count() << " s, formula " << expected.count() << " s";
      }
    }
  }
}

TEST(LocalStepsInTheLab, SendOncePerPeriod) {
  const RunResult run = run_of_periods(period_scenario(1, 1), "local-sgd:period_steps=4");
  ASSERT_EQ(run.wire.size(), 600U);
  for (std::size_t step = 0; step < run.wire.size(); ++step)
    ASSERT_EQ(run.wire[step].size(), step % 4 == 3 ? 1U : 0U) << step;
  EXPECT_EQ(run.plan.period_steps, 4);
}

Result<Job> choose(const std::string& text) { return make_job(period_scenario(1, 1), text, 1); }

TEST(LocalStepsInTheLab, ADelayInPeriodsFollowsThePeriodUnlessItIsSet) {
  EXPECT_EQ(choose("cocod-sgd:period_steps=5")->recipe.plan.delay_steps, 5);
  EXPECT_EQ(choose("cocod-sgd:delay_steps=3:period_steps=5")->recipe.plan.delay_steps, 3);
  EXPECT_EQ(choose("static:period_steps=5")->recipe.plan.delay_steps,
            find_recipe("static")->plan.delay_steps);
}

TEST(LocalStepsInTheLab, AnOuterStepIsLongerWithMoreReplicasUnlessItIsSet) {
  Scenario scenario = period_scenario(1, 1);
  const auto outer_lr = [&](std::size_t replicas, const std::string& recipe) {
    scenario.replicas.resize(replicas, scenario.replicas[0]);
    return make_job(scenario, recipe, 1)->recipe.local.outer_lr;
  };
  EXPECT_LT(outer_lr(2, "diloco"), outer_lr(4, "diloco"));
  EXPECT_LT(outer_lr(4, "diloco"), outer_lr(8, "diloco"));
  EXPECT_EQ(outer_lr(8, "diloco:outer_lr=0.3"), 0.3F);
  EXPECT_EQ(outer_lr(1, "sparseloco"), 1.0F);
  EXPECT_EQ(outer_lr(4, "sparseloco"), 2.0F);
  EXPECT_EQ(outer_lr(4, "sparseloco:outer_lr=1"), 1.0F);
}

TEST(LocalStepsInTheLab, ArePeriodsThatEndWithinTheRun) {
  Scenario scenario = period_scenario(1, 1);
  scenario.train.steps = 30;
  EXPECT_TRUE(make_job(scenario, "diloco", 1).ok());
  scenario.train.steps = 29;
  EXPECT_THAT(
      make_job(scenario, "diloco", 1).error().message,
      HasSubstr("period_steps 30 is longer than the run, train.steps = 29: no round would close"));
}

// As docs/lab.md says: what is left of a period at the end of a run is in nobody's model.
TEST(LocalStepsInTheLab, OfAPeriodThatDoesNotEndAreNotInTheResult) {
  Scenario scenario = period_scenario(1, 1);
  scenario.train.steps = 12;
  const RunResult whole = run_of_periods(scenario, "local-sgd:period_steps=6");
  scenario.train.steps = 17;
  const RunResult longer = run_of_periods(scenario, "local-sgd:period_steps=6");
  EXPECT_EQ(whole.final_loss, longer.final_loss);
  scenario.train.steps = 18;
  EXPECT_LT(run_of_periods(scenario, "local-sgd:period_steps=6").final_loss, whole.final_loss);
}

TEST(LocalStepsInTheLab, AreRefusedWhereTheyDoNotFit) {
  EXPECT_THAT(choose("d-sgd:period_steps=2").error().message,
              HasSubstr("needs local steps, which merge = optimizer has not"));
  EXPECT_THAT(choose("local-sgd:merge=ahead").error().message, HasSubstr("merge = ahead has not"));
  EXPECT_THAT(choose("olco3-oc:period_steps=5001").error().message,
              HasSubstr("delay_steps 15003: expected 0 to 10000"));
  EXPECT_THAT(choose("olco3-oc:outer_lr=0.7").error().message,
              HasSubstr("outer_lr with merge = outer only, got merge = late"));
  EXPECT_THAT(choose("streaming-diloco:residual_decay=0.9").error().message,
              HasSubstr("it keeps no residual"));
  for (const char* recipe : {"streaming-diloco:codec=dense/2bit", "overlap-local-sgd:codec=sign"})
    EXPECT_THAT(choose(recipe).error().message, HasSubstr("need a residual, and it keeps none"));
  EXPECT_TRUE(choose("local-sgd:codec=dense/2bit").ok());
  EXPECT_THAT(choose("diloco:period_steps=4:keep_ratio=0.1").error().message,
              HasSubstr("got dense/fp32, which has no ratio"));
  EXPECT_TRUE(choose("local-sgd:codec=top_k/bf16:keep_ratio=0.1").ok());
  EXPECT_THAT(choose("local-sgd:delay_steps=600").error().message,
              HasSubstr("delay_steps 600 is as long as the run"));
  EXPECT_THAT(choose("local-sgd:lr=0.01:lr=0.02").error().message,
              HasSubstr("each key once, got lr twice"));
  EXPECT_THAT(choose("olco3-tc:merge=anchor").error().message, HasSubstr("may hold nothing back"));
  EXPECT_THAT(choose("auto:codec=threshold/bf16").error().message,
              HasSubstr("threshold sends what is large enough"));
  EXPECT_THAT(choose("auto:period_steps=2").error().message,
              HasSubstr("a recipe with a planner takes none"));
}

}  // namespace
}  // namespace longhaul::lab
