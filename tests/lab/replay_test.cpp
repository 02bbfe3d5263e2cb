// A replay gives to the bit what a run on those links gives.
#include "longhaul/lab/replay.h"

#include <gtest/gtest.h>

#include "longhaul/lab/run.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::lab {
namespace {

Scenario small_scenario(double up, Seconds latency) {
  Scenario scenario;
  scenario.train.steps = 60;
  scenario.train.lr = 0.02;
  scenario.eval = {.every = 5, .samples = 1};
  scenario.target = {.metric = Metric::kAccuracy, .value = 0.5};
  for (const double slower : {1.0, 0.6, 1.3}) {
    ReplicaOptions replica;
    replica.step_time = Seconds(0.1 * slower);
    replica.link = {.up = {.bytes_per_second = up * slower},
                    .down = {.bytes_per_second = 2 * up},
                    .latency = latency,
                    .markov_spread = 0.5,
                    .markov_dwell = Seconds(1)};
    scenario.replicas.push_back(replica);
  }
  return scenario;
}

RunResult run_of(const Scenario& scenario, const std::string& recipe) {
  testing::QuadraticWorkload workload(5001);
  Workers workers(1);
  return run(scenario, {.recipe = recipe}, workload, workers).value();
}

TEST(Replay, GivesTheTimesOfARunOnThoseLinks) {
  const Scenario here = small_scenario(20e3, Seconds(0.1));
  const Scenario there = small_scenario(5e3, Seconds(0.3));
  for (const char* recipe :
       {"d-sgd", "static:keep_ratio=0.02", "dd-ef-sgd:delay_steps=5", "ideal", "dga", "local-sgd",
        "olco3-oc:period_steps=4:delay_steps=6", "streaming-diloco:period_steps=7:delay_steps=9",
        "streaming-diloco:period_steps=2:delay_steps=9"}) {
    const RunResult replayed = replay(there, run_of(here, recipe)).value();
    const RunResult run = run_of(there, recipe);
    ASSERT_EQ(replayed.losses.size(), run.losses.size());
    for (std::size_t i = 0; i < run.losses.size(); ++i)
      ASSERT_EQ(replayed.losses[i].time, run.losses[i].time) << recipe << " step " << i;
    EXPECT_EQ(replayed.time_to_target, run.time_to_target) << recipe;
    EXPECT_EQ(replayed.step_time, run.step_time) << recipe;
    EXPECT_EQ(replayed.efficiency, run.efficiency) << recipe;
    EXPECT_EQ(replayed.evaluations.back().time, run.evaluations.back().time) << recipe;
  }
}

TEST(Replay, RefusesAPlanThatDependsOnTheLinks) {
  const Scenario scenario = small_scenario(20e3, Seconds(0.1));
  EXPECT_FALSE(replay(scenario, run_of(scenario, "auto")).ok());
}

TEST(Replay, RefusesAnotherNumberOfReplicas) {
  const Scenario scenario = small_scenario(20e3, Seconds(0.1));
  Scenario more = scenario;
  more.replicas.push_back(more.replicas.back());
  EXPECT_FALSE(replay(more, run_of(scenario, "d-sgd")).ok());
}

}  // namespace
}  // namespace longhaul::lab
