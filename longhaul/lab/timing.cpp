#include "longhaul/lab/timing.h"

#include <algorithm>
#include <cmath>

#include "longhaul/sync/target.h"

namespace longhaul::lab {
namespace {

// Over whole cycles of the last plan, from a third of the run on, when the pipeline has filled. A
// cycle has as many periods as there are rounds on their way, and one more.
Seconds step_time_slope(const RunResult& run) {
  const std::size_t steps = run.losses.size();
  const auto period = static_cast<std::size_t>(run.period_steps);
  const std::size_t cycle = (static_cast<std::size_t>(run.delay_steps) / period + 1) * period;
  const std::size_t changed = run.plans.empty() ? 0 : run.plans.back().step + 2 * cycle;
  const std::size_t from = std::min(steps, std::max(steps / 3, changed));
  const std::size_t cycles = (steps - from) / cycle;
  if (cycles == 0 || cycles * cycle >= steps) {
    return steps == 0 ? Seconds(0) : run.losses.back().time / static_cast<double>(steps);
  }
  const StepPoint& last = run.losses.back();
  const StepPoint& first = run.losses[steps - 1 - cycles * cycle];
  return (last.time - first.time) / static_cast<double>(cycles * cycle);
}

}  // namespace

void fill_in_times(const Scenario& scenario, RunResult& run) {
  run.step_time = step_time_slope(run);
  Seconds slowest{};
  for (const ReplicaSettings& replica : scenario.replicas)
    slowest = std::max(slowest, replica.step_time);
  run.efficiency = static_cast<double>(run.steps) * (slowest / run.virtual_time);
  run.time_to_target.reset();
  run.steps_to_target.reset();
  if (const auto reached = target_reached(scenario.target, run.evaluations)) {
    run.time_to_target = reached->time;
    run.steps_to_target = static_cast<std::size_t>(std::ceil(reached->step));
  }
}

}  // namespace longhaul::lab
