// Invented runs for tests of what is made of results: d-sgd that reaches its target late, and
// dd-ef-sgd that reaches it early, or never.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "longhaul/lab/results.h"
#include "longhaul/lab/scenario.h"

namespace longhaul::lab {

inline Scenario sample_scenario() {
  Scenario scenario{.name = "sample", .title = "Sample"};
  scenario.target = {.metric = "accuracy", .value = 0.8};
  const LinkSettings link{.up = Bandwidth::from_bits_per_second(5.65e6),
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
  const auto span = [&](std::size_t replica, Activity activity, double begin, double end,
                        std::size_t step) {
    const double start = static_cast<double>(step) * sample.step_time_s;
    run.timeline.push_back({replica, activity, Seconds(start + begin), Seconds(start + end), step});
  };
  for (std::size_t step = 0; step < 6; ++step) {
    for (std::size_t replica = 0; replica < 4; ++replica) {
      span(replica, Activity::kCompute, 0, 0.06, step);
      span(replica, Activity::kSend, 0.06, 0.4 * sample.step_time_s + 0.06, step);
      span(replica, Activity::kReceive, 0.6 * sample.step_time_s, sample.step_time_s, step);
      if (sample.step_time_s > 0.06) span(replica, Activity::kWait, 0.06, sample.step_time_s, step);
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
  return run;
}

}  // namespace longhaul::lab
