// Invented runs for tests of what is made of results: d-sgd that reaches its target late, and
// dd-ef-sgd that reaches it early, or never.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "longhaul/job/scenario.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

inline Scenario sample_scenario() {
  Scenario scenario{.name = "sample", .title = "Sample"};
  scenario.target = {.metric = Metric::kAccuracy, .value = 0.8};
  const LinkOptions link{.up = Bandwidth::from_bits_per_second(5.65e6),
                         .down = Bandwidth::from_bits_per_second(20e6),
                         .latency = Seconds(0.06)};
  scenario.replicas.assign(4, {.link = link});
  return scenario;
}

struct SampleRun {
  std::string recipe;
  std::uint64_t seed = 1;
  double step_time_s = 1;
  double best = 0.9;  // accuracy that it tends to
};

inline void add_sample_timeline(const SampleRun& sample, RunResult& run) {
  const double step_time = sample.step_time_s;
  const auto span = [&](std::size_t replica, Activity activity, double begin, double end,
                        std::size_t step) {
    const double start = static_cast<double>(step) * step_time;
    const bool is_message = activity == Activity::kSend || activity == Activity::kReceive;
    run.timeline.push_back({.replica = replica,
                            .activity = activity,
                            .begin = Seconds(start + begin),
                            .end = Seconds(start + end),
                            .step = step,
                            .latency = Seconds(is_message ? 0.05 : 0)});
  };
  for (std::size_t step = 0; step < 6; ++step) {
    for (std::size_t replica = 0; replica < 4; ++replica) {
      span(replica, Activity::kCompute, 0, 0.06, step);
      span(replica, Activity::kSend, 0.06, 0.4 * step_time + 0.11, step);
      span(replica, Activity::kReceive, 0.6 * step_time, step_time + 0.05, step);
      if (step_time > 0.06) span(replica, Activity::kWait, 0.06, step_time, step);
    }
  }
}

// Replica 3 computes for twice as long as the others, which wait for it.
inline void add_sample_times(RunResult& run) {
  const double steps = static_cast<double>(run.steps);
  const Seconds step = run.step_time;
  for (std::size_t replica = 0; replica < run.replicas; ++replica) {
    const Seconds computing = replica == 3 ? Seconds(0.06) : Seconds(0.03);
    const Seconds rest = step - computing;
    run.spent.push_back({.computing = steps * computing,
                         .sending = steps * 0.6 * rest,
                         .latency = steps * 0.3 * rest,
                         .others = steps * 0.1 * rest});
  }
}

// A planner that answers to a link whose rate falls.
inline void add_sample_plans(RunResult& run) {
  for (std::size_t i = 0; i < 10; ++i) {
    const double share = static_cast<double>(i) / 10;
    run.rates.push_back({.time = share * run.virtual_time,
                         .up_bits_per_s = 5e6 * (1.1 - share),
                         .down_bits_per_s = 5e7});
    if (i % 3 != 0) continue;
    run.plans.push_back({.step = i,
                         .time = share * run.virtual_time,
                         .plan = {.keep_ratio = 0.05 * (1.1 - share),
                                  .delay_steps = 2 + static_cast<int>(i) / 3,
                                  .merge = Merge::kLate},
                         .predicted_step_time = Seconds(0.06),
                         .reason = "the least time"});
  }
}

// By layer: three parts in two steps of 0.1 s, which hide three quarters of the way.
inline void add_sample_layers(RunResult& run) {
  run.part_names = {"out", "conv/1", "conv/2"};
  run.plan.period_steps = 2;
  run.plan.merge = Merge::kLate;
  run.plan.schedule = {{0, 1}, {2}};
  run.planned_hidden_share = 0.8;
  run.planned_exposed = Seconds(0.04);
  const double steps = static_cast<double>(run.steps);
  for (TimeSpent& spent : run.spent)
    spent = {.computing = Seconds(0.075 * steps),
             .sending = Seconds(0.025 * steps),
             .communicating = Seconds(0.1 * steps)};
  run.timeline.clear();
  const auto span = [&](Activity activity, double begin, double end, std::size_t step,
                        std::uint32_t part) {
    const double start = 0.1 * static_cast<double>(step);
    run.timeline.push_back({.activity = activity,
                            .begin = Seconds(start + begin),
                            .end = Seconds(start + end),
                            .step = step,
                            .part = part,
                            .latency = Seconds(part > 0 ? 0.005 : 0)});
  };
  for (std::size_t step = 0; step < 6; ++step) {
    span(Activity::kWait, 0, 0.025, step, step % 2 == 0 ? 2 : 1);
    span(Activity::kCompute, 0.025, 0.1, step, 0);
    for (const std::uint32_t part : run.plan.schedule[step % 2]) {
      span(Activity::kSend, 0.05 + 0.01 * part, 0.08 + 0.01 * part, step, part);
      span(Activity::kReceive, 0.08 + 0.01 * part, 0.11 + 0.01 * part, step, part);
    }
  }
}

inline RunResult sample_run(const SampleRun& sample) {
  RunResult run{.recipe = sample.recipe, .seed = sample.seed, .lr = 0.05};
  run.replicas = 4;
  run.parameters = 106'000;
  run.steps = 200;
  run.step_time = Seconds(sample.step_time_s);
  run.virtual_time = 200 * run.step_time;
  run.efficiency = 0.06 / sample.step_time_s;
  run.bytes_up = 84'800'000;
  run.bytes_down = 42'400'000;
  run.digest = "0123456789abcdef";
  run.codec = "dense/fp32";
  for (std::size_t step = 1; step <= run.steps; ++step) {
    const double progress = 1 - std::exp(-static_cast<double>(step) / 60);
    const Seconds time = static_cast<double>(step) * run.step_time;
    run.losses.push_back({.step = step, .time = time, .loss = 2.3 - 2 * progress});
    if (step % 10 != 0) continue;
    const double wobble = 0.01 * std::sin(static_cast<double>(step * sample.seed));
    const double accuracy = sample.best * progress + wobble;
    run.evaluations.push_back(
        {.step = step, .time = time, .loss = 2.3 - 2 * progress - wobble, .accuracy = accuracy});
    if (accuracy < 0.8 || run.time_to_target) continue;
    run.time_to_target = time;
    run.steps_to_target = step;
  }
  run.final_loss = run.evaluations.back().loss;
  run.final_accuracy = run.evaluations.back().accuracy;
  add_sample_timeline(sample, run);
  add_sample_times(run);
  return run;
}

}  // namespace longhaul::lab
