#include "longhaul/lab/factors.h"

#include <algorithm>
#include <cmath>

namespace longhaul::lab {
namespace {

TimeSpent scaled(const TimeSpent& spent, double by) {
  return {.computing = spent.computing * by,
          .sending = spent.sending * by,
          .latency = spent.latency * by,
          .others = spent.others * by,
          .communicating = spent.communicating * by};
}

bool is_known(const RunResult& run) {
  return run.steps > 0 && !run.spent.empty() &&
         std::ranges::all_of(run.spent,
                             [](const TimeSpent& one) { return one.total() > Seconds(0); });
}

// Nothing unless both reached the target.
std::optional<double> quotient(const std::optional<Spread>& base, const std::optional<Spread>& of) {
  if (!base || !of) return std::nullopt;
  const double factor = base->median / of->median;
  if (!std::isfinite(factor) || !(factor > 0)) return std::nullopt;
  return factor;
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
    sum.communicating += one.communicating;
  }
  return scaled(sum, 1.0 / static_cast<double>(run.steps * run.spent.size()));
}

std::optional<double> computing_share(const RunResult& run) {
  if (!is_known(run)) return std::nullopt;
  double sum = 0;
  for (const TimeSpent& one : run.spent) sum += one.computing / one.total();
  return sum / static_cast<double>(run.spent.size());
}

std::optional<double> hidden_share(const RunResult& run) {
  const std::optional<TimeSpent> step = mean_step(run);
  if (!step || !(step->communicating > Seconds(0))) return std::nullopt;
  return std::max(0.0, 1 - step->waiting() / step->communicating);
}

std::optional<Seconds> exposed(const RunResult& run) {
  const std::optional<TimeSpent> step = mean_step(run);
  if (!step) return std::nullopt;
  return step->waiting() * static_cast<double>(run.plan.period_steps);
}

std::optional<double> time_factor(const Summary& of, const Summary& base) {
  return quotient(base.time_to_target_s, of.time_to_target_s);
}

std::optional<double> steps_factor(const Summary& of, const Summary& base) {
  return quotient(base.steps_to_target, of.steps_to_target);
}

std::optional<Spread> steps_factor_by_seed(const Summary& of, const Summary& base,
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

}  // namespace longhaul::lab
