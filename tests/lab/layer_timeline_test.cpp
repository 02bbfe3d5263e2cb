// The lab's virtual time of recipes by layer, which comes from events, against the timeline
// function, which does not know of them.
#include "longhaul/plan/layer_timeline.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>

#include "longhaul/job/job.h"
#include "longhaul/lab/run.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::lab {
namespace {

constexpr int kRuns = 200;

// One random model on one random link.
struct Trial {
  LayerTable layers;
  Scenario scenario;
  std::string recipe;
};

double between(std::mt19937_64& random, double least, double most) {
  return std::uniform_real_distribution(least, most)(random);
}

Trial random_trial(std::mt19937_64& random) {
  Trial trial;
  std::size_t elements = 0;
  for (std::size_t i = 0, layers = 2 + random() % 10; i < layers; ++i) {
    const std::size_t count = 1 + random() % 400;
    const std::string name = "layer" + std::to_string(i);
    trial.layers.push_back({.name = name + ".weight", .offset = elements, .count = count});
    trial.scenario.times.layers.push_back({.name = name,
                                           .forward = Seconds(between(random, 0.1, 1)),
                                           .backward = Seconds(between(random, 0.1, 2))});
    elements += count;
  }
  const std::size_t period = 1 + random() % 5;
  trial.scenario.train.steps = 12 * period;
  trial.scenario.train.lr = 1e-3;
  trial.scenario.eval.every = 1'000'000;
  trial.scenario.target.value = 2;
  const Seconds step(0.05);
  // A step carries between a tenth of an update and two whole ones.
  const double bytes = 4.0 * static_cast<double>(elements);
  ReplicaOptions replica{.step_time = step};
  replica.link.up = {.bytes_per_second = between(random, 0.1, 2) * bytes / step.count()};
  replica.link.down = {.bytes_per_second = between(random, 0.1, 2) * bytes / step.count()};
  replica.link.latency = step * between(random, 0, 0.7);
  trial.scenario.replicas.assign(2, replica);
  const std::string settings = ":period_steps=" + std::to_string(period);
  const std::vector<std::string> recipes = {"wfbp", "local-sgd-parts" + settings,
                                            "plsgd-enp" + settings, "dreamddp" + settings};
  trial.recipe = recipes[random() % recipes.size()];
  return trial;
}

// The parts of the run, with the bytes that they really had on the wire.
LayerProfile parts_of_run(const Trial& trial, const RunResult& run) {
  const Job job = make_job(trial.scenario, trial.recipe, 1).value();
  LayerProfile parts = scaled(part_times(engine_options(job, trial.layers).value()),
                              trial.scenario.replicas[0].step_time);
  for (const StepWire& step : run.wire) {
    for (const auto& [part, wire] : step) parts.layers.at(part).bytes = wire.up[0];
  }
  return parts;
}

LayerSteps steps_of(const Plan& plan, std::size_t parts) {
  LayerSteps steps;
  for (std::size_t step = 0; step < static_cast<std::size_t>(plan.period_steps); ++step)
    steps.push_back(parts_in_step(plan, parts, step));
  return steps;
}

// Over whole periods. The last step of a run has no forward pass behind it.
Seconds step_time_of(const RunResult& run) {
  const auto period = static_cast<std::size_t>(run.plan.period_steps);
  const std::size_t last = run.losses.size() - 2;
  const std::size_t steps = last / period * period;
  return (run.losses[last].time - run.losses[last - steps].time) / static_cast<double>(steps);
}

// The relative difference of the timeline from the events.
double difference(const RunResult& run, const LayerProfile& parts, const LayerLink& link) {
  const LayerTimeline timeline =
      layer_timeline(parts, link, steps_of(run.plan, parts.layers.size()));
  return std::abs(timeline.step_time / step_time_of(run) - 1);
}

TEST(LayerTimelineOfTheLab, IsThatOfTheTimelineFunction) {
  std::mt19937_64 random(21);
  int seen_latency_on_the_line = 0;
  int seen_swapped_ways = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Trial trial = random_trial(random);
    longhaul::testing::QuadraticWorkload workload(trial.layers);
    Workers workers(1);
    const RunResult run =
        lab::run(trial.scenario, {.recipe = trial.recipe}, workload, workers).value();
    LayerProfile parts = parts_of_run(trial, run);
    const LinkOptions& link = trial.scenario.replicas[0].link;
    const LayerLink right{.up = link.up, .down = link.down, .latency = link.latency};
    EXPECT_LT(difference(run, parts, right), 1e-9) << trial.recipe << ", run " << i;
    // What the comparison must not miss: ways in the wrong order, latency that occupies the line.
    const LayerLink swapped{.up = link.down, .down = link.up, .latency = link.latency};
    if (difference(run, parts, swapped) > 1e-6) ++seen_swapped_ways;
    for (LayerProfile::Layer& layer : parts.layers)
      layer.bytes += link.up.bytes_per_second * link.latency.count();
    const LayerLink near{.up = link.up, .down = link.down};
    if (difference(run, parts, near) > 1e-6) ++seen_latency_on_the_line;
  }
  EXPECT_GT(seen_swapped_ways, kRuns / 2);
  EXPECT_GT(seen_latency_on_the_line, kRuns / 2);
}

// Four replicas with a model of twelve even layers. A step carries `alpha` dense updates.
Trial even_trial(double alpha) {
  constexpr std::size_t kLayerElements = 4000;
  constexpr Seconds kStep{0.05};
  Trial trial{.recipe = "auto"};
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string name = "layer" + std::to_string(i);
    trial.layers.push_back(
        {.name = name + ".weight", .offset = i * kLayerElements, .count = kLayerElements});
    trial.scenario.times.layers.push_back(
        {.name = name, .forward = Seconds(0.1), .backward = Seconds(0.2)});
  }
  trial.scenario.train.steps = 200;
  trial.scenario.train.lr = 1e-3;
  trial.scenario.eval.every = 1'000'000;
  trial.scenario.target.value = 2;
  ReplicaOptions replica{.step_time = kStep};
  replica.link.up = {.bytes_per_second = alpha * 48e3 * sizeof(float) / kStep.count()};
  replica.link.down = replica.link.up;
  replica.link.latency = kStep * 0.001;
  trial.scenario.replicas.assign(4, replica);
  return trial;
}

RunResult run_of(const Trial& trial) {
  longhaul::testing::QuadraticWorkload workload(trial.layers);
  Workers workers(1);
  return lab::run(trial.scenario, {.recipe = trial.recipe}, workload, workers).value();
}

TEST(AutoOfTheLab, SendsLayersByThemselvesOnAFastLink) {
  const RunResult run = run_of(even_trial(40));
  ASSERT_FALSE(run.plan.schedule.empty());
  EXPECT_EQ(run.plan.keep_ratio, 1);
  ASSERT_EQ(run.plans.size(), 1U);
  EXPECT_NEAR(step_time_of(run) / run.plans[0].predicted_step_time, 1, 0.01);
}

TEST(AutoOfTheLab, CompressesTheWholeModelOnASlowLink) {
  const RunResult run = run_of(even_trial(0.1));
  EXPECT_TRUE(run.plan.schedule.empty());
  EXPECT_LT(run.plan.keep_ratio, 0.2);
}

// The lab itself refuses replicas that end with different models.
TEST(AutoOfTheLab, GoesFromLayersToTheWholeModelWhenTheLinkFalls) {
  Trial trial = even_trial(0.4);  // its mean: 100 in the first seconds, then 0.1
  const std::string file = ::testing::TempDir() + "falling_link.csv";
  std::ofstream(file) << "t_s,mbps\n0,1000\n3,1\n1000,1\n";
  for (ReplicaOptions& replica : trial.scenario.replicas) replica.link.trace = file;
  trial.scenario.train.steps = 400;
  const RunResult run = run_of(trial);
  ASSERT_GE(run.plans.size(), 2U);
  EXPECT_FALSE(run.plans.front().plan.schedule.empty());
  EXPECT_TRUE(run.plan.schedule.empty());
  EXPECT_LT(run.plan.keep_ratio, 0.5);
}

}  // namespace
}  // namespace longhaul::lab
