#include "longhaul/lab/factors.h"

#include <algorithm>
#include <cmath>

namespace longhaul::lab {
namespace {

TimeSpent scaled(const TimeSpent& spent, double by) {
  return {.computing = spent.computing * by,
          .sending = spent.sending * by,
          .latency = spent.latency * by,
          .others = spent.others * by};
}

bool is_known(const RunResult& run) {
  return run.steps > 0 && !run.spent.empty() &&
         std::ranges::all_of(run.spent,
                             [](const TimeSpent& one) { return one.total() > Seconds(0); });
}

std::optional<Spread> steps_by_seed(const Summary& of, const Summary& base,
                                    const std::vector<RunResult>& runs) {
  std::vector<double> values;
  for (const std::size_t own : of.runs) {
    for (const std::size_t other : base.runs) {
      const RunResult& a = runs[own];
      const RunResult& b = runs[other];
      if (a.seed == b.seed && a.steps_to_target && b.steps_to_target && *a.steps_to_target > 0)
        values.push_back(static_cast<double>(*b.steps_to_target) /
                         static_cast<double>(*a.steps_to_target));
    }
  }
  if (values.size() < 2) return std::nullopt;
  return spread_of(std::move(values));
}

}  // namespace

std::optional<TimeSpent> mean_step_of(const RunResult& run, std::size_t replica) {
  if (!is_known(run) || replica >= run.spent.size()) return std::nullopt;
  return scaled(run.spent[replica], 1.0 / static_cast<double>(run.steps));
}

std::optional<TimeSpent> mean_step(const RunResult& run) {
  if (!is_known(run)) return std::nullopt;
  TimeSpent sum;
  for (const TimeSpent& one : run.spent) {
    sum.computing += one.computing;
    sum.sending += one.sending;
    sum.latency += one.latency;
    sum.others += one.others;
  }
  return scaled(sum, 1.0 / static_cast<double>(run.steps * run.spent.size()));
}

std::optional<double> computing_share(const RunResult& run) {
  if (!is_known(run)) return std::nullopt;
  double sum = 0;
  for (const TimeSpent& one : run.spent) sum += one.computing / one.total();
  return sum / static_cast<double>(run.spent.size());
}

std::optional<Factors> factors(const Summary& of, const Summary& base,
                               const std::vector<RunResult>& runs) {
  if (!of.time_to_target_s || !base.time_to_target_s || !of.steps_to_target ||
      !base.steps_to_target)
    return std::nullopt;
  const double time = base.time_to_target_s->median / of.time_to_target_s->median;
  const double steps = base.steps_to_target->median / of.steps_to_target->median;
  if (!std::isfinite(time) || !std::isfinite(steps) || !(time > 0) || !(steps > 0))
    return std::nullopt;
  return Factors{.time = time,
                 .step_time = time / steps,
                 .steps = steps,
                 .steps_by_seed = steps_by_seed(of, base, runs)};
}

}  // namespace longhaul::lab
