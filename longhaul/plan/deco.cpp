#include "longhaul/plan/deco.h"

#include <algorithm>
#include <cmath>

#include "longhaul/base/check.h"
#include "longhaul/plan/reason.h"

namespace longhaul {
namespace {

// A step may be longer than computing by this share and still count as hidden: bisection ends
// somewhere.
constexpr double kHiddenSlack = 1e-9;

constexpr int kAnyDelay = 1'000'000'000;  // so late that only rates matter

bool takes_no_longer(Seconds step, Seconds busy) { return step <= busy * (1 + kHiddenSlack); }

Decision least_time(const Conditions& replicas, const RoundSizes& sizes, Merge merge,
                    int most_delay) {
  std::optional<Decision> best;
  for (int delay = 0; delay <= most_delay; ++delay) {
    for (const RoundSize& size : sizes.table()) {
      const Decision candidate = predicted(
          replicas, size, {.keep_ratio = size.keep_ratio, .delay_steps = delay, .merge = merge},
          calibrated_model(merge));
      if (!best || candidate.time() < best->time()) best = candidate;
    }
  }
  return *best;
}

}  // namespace

Decision predicted(const Conditions& replicas, const RoundSize& size, const Plan& plan,
                   const IterationModel& model, double fall) {
  Decision decision{.plan = plan};
  const Paces paces(replicas);
  const Loop loop(plan.delay_steps, plan.period_steps);
  decision.step_time = paces.of(size, plan.period_steps).at(loop);
  decision.likely_step_time =
      (decision.step_time + paces.of(size, plan.period_steps, fall).at(loop)) / 2;
  decision.relative_steps = model.steps(plan);
  decision.is_hidden = takes_no_longer(decision.step_time, paces.busy(plan.period_steps));
  return decision;
}

double convergence_factor(double keep_ratio, int delay_steps) {
  return (1 - keep_ratio) / (keep_ratio * std::pow(1 - keep_ratio / 2, delay_steps));
}

std::optional<double> convergence_turn(int delay_steps) {
  const double tau = delay_steps;
  const double under_root = (tau + 1) * (tau + 1) - 8 * tau;
  if (delay_steps < 6 || under_root < 0) return std::nullopt;
  return ((tau + 1) - std::sqrt(under_root)) / (2 * tau);
}

std::optional<double> largest_hidden_ratio(const Paces& paces, const RoundSizes& sizes,
                                           int delay_steps) {
  const Loop loop(delay_steps, 1);
  const auto is_hidden = [&](const RoundSize& size) {
    return takes_no_longer(paces.of(size).at(loop), paces.busy(1));
  };
  const std::span<const RoundSize> table = sizes.table();
  // The first row that does not hide: sizes ascend, so all after it do not either.
  const auto above = std::partition_point(table.begin(), table.end(), is_hidden);
  if (above == table.begin()) return std::nullopt;
  if (above == table.end()) return table.back().keep_ratio;
  double hidden = std::prev(above)->keep_ratio;
  double shown = above->keep_ratio;
  for (int i = 0; i < 8; ++i) {  // to a 256th of 0.7 %
    const double middle = (hidden + shown) / 2;
    (is_hidden(sizes.at(middle)) ? hidden : shown) = middle;
  }
  return hidden;
}

Decision deco(const Conditions& replicas, const RoundSizes& sizes, Merge merge, int most_delay) {
  LONGHAUL_CHECK(!replicas.empty());
  const Paces paces(replicas);
  std::optional<Plan> best;
  double best_factor = 0;
  const auto consider = [&](double keep_ratio, int delay) {
    const double factor = convergence_factor(keep_ratio, delay);
    if (best && factor >= best_factor) return;
    best = Plan{.keep_ratio = keep_ratio, .delay_steps = delay, .merge = merge};
    best_factor = factor;
  };
  const std::optional<double> by_rates = largest_hidden_ratio(paces, sizes, kAnyDelay);
  for (int delay = 0; delay <= most_delay && by_rates; ++delay) {
    const std::optional<double> largest = largest_hidden_ratio(paces, sizes, delay);
    if (!largest) continue;
    consider(*largest, delay);
    // φ may turn before δ*: the turn is then better.
    const std::optional<double> turn = convergence_turn(delay);
    if (turn && *turn < *largest && *turn >= sizes.table().front().keep_ratio)
      consider(*turn, delay);
    // From here on the lines' rates alone limit the ratio, and φ grows with the delay.
    if (*largest >= *by_rates * (1 - 1e-3)) break;
  }
  Decision decision =
      best ? predicted(replicas, sizes.at(best->keep_ratio), *best, calibrated_model(merge))
           : least_time(replicas, sizes, merge, most_delay);
  decision.reason = reason_of(replicas, sizes, decision,
                              best ? "the smallest convergence factor of all plans that hide "
                                     "communication"
                                   : "nothing hides communication on this link; the least "
                                     "predicted time to the target");
  return decision;
}

}  // namespace longhaul
