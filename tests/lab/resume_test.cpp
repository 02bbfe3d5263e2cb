// A run of the lab that was stopped goes on from its checkpoint as if it had not been.
#include <gtest/gtest.h>

#include <sstream>

#include "longhaul/lab/results_json.h"
#include "longhaul/lab/run.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::lab {
namespace {

constexpr std::size_t kStopAfter = 23;  // with means on their way

Scenario varying_scenario() {
  Scenario scenario;
  scenario.train.steps = 60;
  scenario.train.lr = 0.02;
  scenario.eval = {.every = 5, .samples = 1};
  scenario.target = {.metric = Metric::kAccuracy, .value = 0.5};
  for (const double slower : {1.0, 0.6, 1.3}) {
    ReplicaOptions replica;
    replica.step_time = Seconds(0.1 * slower);
    replica.link = {.up = {.bytes_per_second = 20e3 * slower},
                    .down = {.bytes_per_second = 40e3},
                    .latency = Seconds(0.1),
                    .markov_spread = 0.5,
                    .markov_dwell = Seconds(1)};
    scenario.replicas.push_back(replica);
  }
  return scenario;
}

Result<RunResult> run_with(RunOptions request, const std::string& recipe,
                           const Scenario& scenario = varying_scenario()) {
  testing::QuadraticWorkload workload(501);
  Workers workers(1);
  request.recipe = recipe;
  return run(scenario, request, workload, workers);
}

// All of it: losses, times, evaluations, bytes, the digest.
std::string events_of(const RunResult& run) {
  std::ostringstream text;
  write_run_events(text, run);
  return text.str();
}

ByteBuffer checkpoint_of(const std::string& recipe) {
  ByteBuffer file;
  const auto stop = [](std::size_t done, std::size_t) { return done < kStopAfter; };
  const auto save = [&](const State& state) { file = to_bytes(state); };
  EXPECT_EQ(run_with({.progress = stop, .save = save}, recipe)->steps, kStopAfter);
  return file;
}

TEST(LabResume, EndsAsIfItHadNotBeenStopped) {
  for (const char* recipe :
       {"d-sgd", "static:delay_steps=4", "dd-ef-sgd:delay_steps=5", "ideal", "dga", "cocktail",
        "local-sgd", "olco3-oc:period_steps=5:delay_steps=8",
        "streaming-diloco:period_steps=7:delay_steps=9", "olco3-tc:period_steps=5",
        "olco3-vq:period_steps=5", "diloco:period_steps=7", "sparseloco:period_steps=7",
        "overlap-local-sgd:period_steps=5"}) {
    const State state = state_from_bytes(checkpoint_of(recipe)).value();
    const Result<RunResult> resumed = run_with({.resume = &state}, recipe);
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_EQ(events_of(*resumed), events_of(run_with({}, recipe).value())) << recipe;
  }
}

// Killed after the checkpoint of its last step, before its results were written.
TEST(LabResume, ARunThatWasAtItsTargetDoesNotGoOn) {
  Scenario scenario = varying_scenario();
  scenario.train.stop = StopAt::kTarget;
  scenario.target = {.metric = Metric::kLoss, .value = 0.3};
  State last;
  const auto save = [&](const State& state) { last = state; };
  const RunResult whole =
      run_with({.save = save, .save_every = scenario.eval.every}, "static", scenario).value();
  ASSERT_LT(whole.steps, scenario.train.steps);
  const Result<RunResult> resumed = run_with({.resume = &last}, "static", scenario);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message;
  EXPECT_EQ(events_of(*resumed), events_of(whole));
}

TEST(LabResume, SavesEverySoManySteps) {
  std::size_t saved = 0;
  const auto save = [&](const State& /*state*/) { ++saved; };
  ASSERT_TRUE(run_with({.save = save, .save_every = 7}, "static").ok());
  EXPECT_EQ(saved, 60U / 7);
}

TEST(LabResume, RefusesWhatDoesNotFit) {
  const State state = state_from_bytes(checkpoint_of("d-sgd")).value();
  EXPECT_FALSE(run_with({.resume = &state}, "dga").ok());   // another rule
  EXPECT_FALSE(run_with({.resume = &state}, "auto").ok());  // a planner
  State damaged = state;
  damaged.blobs.erase("replica.2");
  EXPECT_FALSE(run_with({.resume = &damaged}, "d-sgd").ok());
}

TEST(LabResume, ARunWithAPlannerIsNotSaved) { EXPECT_TRUE(checkpoint_of("auto").empty()); }

}  // namespace
}  // namespace longhaul::lab
