#include "longhaul/plan/auto_planner.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/plan/reason.h"

namespace longhaul {
namespace {

constexpr std::size_t kRowStride = 16;  // of the table of sizes: ratios 11 % apart
constexpr double kAgreementGain = 0.1;
constexpr std::size_t kRoundsBetweenChanges = 10;
constexpr double kWorthAChange = 1.07;  // predicted gain that a change must bring
constexpr double kWorthItAtOnce = 1.3;  // and one that does not wait

double cost_of(const Decision& decision) {
  return decision.step_time.count() * decision.relative_steps;
}

}  // namespace

double agreement_of(std::span<const double> squares, double mean_square) {
  const auto n = static_cast<double>(squares.size());
  double sum = 0;
  for (const double square : squares) sum += square;
  if (n < 2 || sum <= 0) return 1;
  // n²‖mean‖² = Σ‖m_i‖² + Σ_{i≠j} m_i·m_j, and the last sum is (n-1)·Σ‖m_i‖² if all are equal.
  return std::clamp((n * n * mean_square - sum) / ((n - 1) * sum), -1.0, 1.0);
}

AutoPlanner::AutoPlanner(RoundSizes sizes, const AutoLimits& limits)
    : sizes_(std::move(sizes)), limits_(limits) {}

void AutoPlanner::note_agreement(double agreement) {
  agreement_ = agreement_ ? *agreement_ + kAgreementGain * (agreement - *agreement_) : agreement;
}

bool AutoPlanner::replicas_agree() const { return !agreement_ || *agreement_ >= kAgreementForLate; }

IterationModel AutoPlanner::model_of(Merge merge) const {
  return calibrated_model(merge).corrected(agreement_);
}

Decision AutoPlanner::judged(const Conditions& replicas, const Plan& plan) const {
  Decision decision{.plan = plan};
  decision.step_time = step_time(replicas, sizes_.at(plan.keep_ratio), plan.delay_steps);
  decision.relative_steps = model_of(plan.merge).steps(plan.keep_ratio, plan.delay_steps);
  decision.is_hidden = decision.step_time <= least_step_time(replicas) * (1 + 1e-9);
  return decision;
}

Decision AutoPlanner::best(const Conditions& replicas) const {
  LONGHAUL_CHECK(!replicas.empty());
  const Merge merge = replicas_agree() || !limits_.may_look_ahead ? Merge::kLate : Merge::kAhead;
  const IterationModel model = model_of(merge);
  std::array<double, kMostAutoDelay + 1> late_cost{};
  for (int delay = 0; delay <= limits_.most_delay; ++delay)
    late_cost.at(static_cast<std::size_t>(delay)) = model.delay_cost(delay);
  const std::span<const RoundSize> table = sizes_.table();
  std::optional<Plan> best;
  Seconds least{};
  // From the largest ratio and the shortest delay on, so that ties send more and wait less.
  for (std::size_t back = 0; back < table.size(); back += kRowStride) {
    const RoundSize& size = table[table.size() - 1 - back];
    const Pace pace = pace_of(replicas, size);
    const double dropped = 1 + model.drop_cost(size.keep_ratio);
    for (int delay = 0; delay <= limits_.most_delay; ++delay) {
      const Seconds time =
          pace.at(delay) * (dropped + late_cost.at(static_cast<std::size_t>(delay)));
      if (best && time >= least) continue;
      best = Plan{.keep_ratio = size.keep_ratio, .delay_steps = delay, .merge = merge};
      least = time;
    }
  }
  Decision decision = judged(replicas, *best);
  decision.reason = reason_of(replicas, sizes_, decision, why(decision));
  return decision;
}

std::optional<Decision> AutoPlanner::decide(const Conditions& replicas, const Plan& current) {
  ++rounds_;
  Decision wanted = best(replicas);
  if (wanted.plan == current) return std::nullopt;
  const double gain = cost_of(judged(replicas, current)) / cost_of(wanted);
  const bool is_soon = rounds_ - last_change_ < kRoundsBetweenChanges;
  if (gain < (is_soon ? kWorthItAtOnce : kWorthAChange)) return std::nullopt;
  last_change_ = rounds_;
  return wanted;
}

std::string AutoPlanner::why(const Decision& decision) const {
  std::string text = "the least predicted time to the target";
  if (!agreement_) return text;
  std::array<char, 64> share{};
  (void)std::snprintf(share.data(), share.size(), " (replicas agree by %.2f, so ", *agreement_);
  text += share.data();
  return text + (decision.plan.merge == Merge::kLate ? "each steps by itself and corrects late)"
                                                     : "all look ahead with one momentum)");
}

}  // namespace longhaul
