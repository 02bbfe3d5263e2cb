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
  const auto period = static_cast<std::size_t>(run.plan.period_steps);
  const std::size_t cycle = (static_cast<std::size_t>(run.plan.delay_steps) / period + 1) * period;
  const std::size_t changed = run.plans.empty() ? 0 : run.plans.back().step + 2 * cycle;
  const std::size_t from = std::min(steps, std::max(steps / 3, changed));
  const std::size_t cycles = (steps - from) / cycle;
  if (cycles == 0 || cycles * cycle >= steps) {
    return steps == 0 ? Seconds(0) : run.losses.back().time / static_cast<double>(steps);
  }
  const EvalPoint& last = run.losses.back();
  const EvalPoint& first = run.losses[steps - 1 - cycles * cycle];
  return (last.time - first.time) / static_cast<double>(cycles * cycle);
}

constexpr std::size_t kRatePoints = 200;

// The rate of the slowest line; 0 where none carried anything. Both are by replica.
double least_rate(const std::vector<double>& bytes, const std::vector<double>& seconds) {
  double least = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!(seconds[i] > 0)) continue;
    const double rate = 8 * bytes[i] / seconds[i];
    least = least > 0 ? std::min(least, rate) : rate;
  }
  return least;
}

// Leaves out bytes of which the time on the line is not known.
void add_line(const std::vector<double>& bytes, const std::vector<double>& seconds,
              std::vector<double>& sum_bytes, std::vector<double>& sum_seconds) {
  const std::size_t known = std::min(bytes.size(), seconds.size());
  sum_bytes.resize(std::max(sum_bytes.size(), known));
  sum_seconds.resize(sum_bytes.size());
  for (std::size_t i = 0; i < known; ++i) {
    sum_bytes[i] += bytes[i];
    sum_seconds[i] += seconds[i];
  }
}

// The rates of busy lines, over groups of steps.
std::vector<RatePoint> rates_of(const RunResult& run) {
  std::vector<RatePoint> rates;
  const std::size_t steps = std::min(run.wire.size(), run.losses.size());
  const std::size_t group = std::max<std::size_t>(1, (steps + kRatePoints - 1) / kRatePoints);
  for (std::size_t from = 0; from < steps; from += group) {
    RoundWire sum;
    const std::size_t to = std::min(steps, from + group);
    for (std::size_t step = from; step < to; ++step) {
      for (const auto& [part, wire] : run.wire[step]) {
        add_line(wire.up, wire.up_line_s, sum.up, sum.up_line_s);
        add_line(wire.down, wire.down_line_s, sum.down, sum.down_line_s);
      }
    }
    const RatePoint point{.time = run.losses[to - 1].time,
                          .up_bits_per_s = least_rate(sum.up, sum.up_line_s),
                          .down_bits_per_s = least_rate(sum.down, sum.down_line_s)};
    if (point.up_bits_per_s > 0) rates.push_back(point);
  }
  return rates;
}

}  // namespace

void fill_in_times(const Scenario& scenario, RunResult& run) {
  run.step_time = step_time_slope(run);
  Seconds slowest{};
  for (const ReplicaOptions& replica : scenario.replicas)
    slowest = std::max(slowest, replica.step_time);
  run.efficiency = static_cast<double>(run.steps) * (slowest / run.virtual_time);
  if (!run.wire.empty()) run.rates = rates_of(run);
  run.time_to_target.reset();
  run.steps_to_target.reset();
  if (const auto reached = target_reached(scenario.target, run.evaluations)) {
    run.time_to_target = reached->time;
    run.steps_to_target = static_cast<std::size_t>(std::ceil(reached->step));
  }
}

}  // namespace longhaul::lab
