// The part of `auto` that chooses schedules of layers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/plan/auto_planner.h"
#include "longhaul/plan/layer_planner.h"
#include "longhaul/plan/reason.h"

namespace longhaul {
namespace {

constexpr double kAlike = 0.03;      // links and speeds that differ by less have the same schedule
constexpr double kFallsAlike = 0.1;  // and risks of a fall

bool are_about(double a, double b, double most) { return std::abs(a / b - 1) <= most; }

}  // namespace

bool AutoPlanner::knows_parts_of(const Plan& plan) const {
  return std::ranges::all_of(plan.schedule, [&](const auto& parts) {
    return parts.empty() || parts.back() < options().parts.layers.size();
  });
}

std::optional<Decision> AutoPlanner::best_by_layer(const Conditions& replicas) const {
  if (options().parts.layers.size() < 2 || merge_ != Merge::kLate) return std::nullopt;
  std::optional<Decision> best;
  for (int period = 1; period <= most_period(); period *= 2) {
    for (const LayerPolicy policy : {LayerPolicy::kScheduled, LayerPolicy::kScheduledLate}) {
      const Plan plan =
          scheduled({.period_steps = period, .merge = merge_}, policy, options(), replicas, sizes())
              .plan;
      Decision decision = prediction_of(replicas, plan);
      if (!best || decision.time() < best->time()) best = std::move(decision);
    }
  }
  return best;
}

Decision AutoPlanner::prediction_of(const Conditions& replicas, const Plan& plan) const {
  const IterationModel model = model_of(plan);
  return plan.schedule.empty()
             ? predicted(replicas, sizes().at(plan.keep_ratio), plan, model, risk_.factor())
             : predicted_by_layer(plan, options(), replicas, sizes(), model, risk_.factor());
}

void AutoPlanner::try_layers(const Conditions& replicas) {
  if (options().parts.layers.size() < 2 || merge_ != Merge::kLate) return tried_.reset();
  Tried now{.link = layer_link(replicas, sizes(), 1),
            .compute = Paces(replicas).computing(),
            .fall = risk_.factor()};
  const auto is_as_before = [&](const Tried& before) {
    const Seconds latency = now.link.latency - before.link.latency;
    return are_about(now.link.up.bytes_per_second, before.link.up.bytes_per_second, kAlike) &&
           are_about(now.link.down.bytes_per_second, before.link.down.bytes_per_second, kAlike) &&
           are_about(now.compute.count(), before.compute.count(), kAlike) &&
           std::abs(latency / now.compute) <= kAlike &&
           are_about(now.fall, before.fall, kFallsAlike);
  };
  if (tried_ && is_as_before(*tried_)) return;
  if (const std::optional<Decision> found = best_by_layer(replicas)) now.plan = found->plan;
  tried_ = std::move(now);
}

std::optional<Decision> AutoPlanner::tried_layers(const Conditions& replicas) const {
  if (!tried_ || !tried_->plan || merge_ != Merge::kLate) return std::nullopt;
  return prediction_of(replicas, *tried_->plan);
}

Decision AutoPlanner::best_of_both(const Conditions& replicas, const Plan& current) const {
  Decision whole = search(replicas);
  std::optional<Decision> layers = tried_layers(replicas);
  const double margin = current.schedule.empty() ? kWorthOtherParts : 1 / kWorthOtherParts;
  return layers && margin * layers->time() < whole.time() ? *std::move(layers) : whole;
}

Decision AutoPlanner::explained(const Conditions& replicas, Decision decision,
                                const std::optional<Decision>& other) const {
  if (decision.plan.schedule.empty()) {
    decision.reason = reason_of(replicas, sizes(), decision, why());
  } else {
    const double hidden = timeline_of(decision.plan, options(), replicas, sizes()).hidden_share;
    decision.reason = reason_by_layer(decision, Paces(replicas).computing(), hidden, why());
  }
  if (other) decision.reason += against(decision, *other);
  return decision;
}

}  // namespace longhaul
