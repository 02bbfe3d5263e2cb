#include "longhaul/plan/planner.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/plan/auto_planner.h"
#include "longhaul/plan/layer_planner.h"

namespace longhaul {
namespace {

class DecoPlanner final : public Planner {
 public:
  using Planner::Planner;

  void expect(std::size_t replicas) override { (void)resize(replicas); }
  Decision first(const Conditions& replicas) override {
    return deco(replicas, sizes(), options().plan.merge);
  }

  // The delay changes when DeCo's does; the ratio when it has moved by a tenth.
  std::optional<Decision> round_closed(const RoundFacts& facts) override {
    Decision decision = first(facts.replicas);
    const double moved = std::abs(decision.plan.keep_ratio / facts.current.keep_ratio - 1);
    if (decision.plan.delay_steps == facts.current.delay_steps && moved < 0.1) return std::nullopt;
    return decision;
  }
};

class RandomPlanner final : public Planner {
 public:
  RandomPlanner(const RoundSizes& sizes, const PlannerOptions& options)
      : Planner(sizes, options), chooser_(sizes, options), random_(options.seed) {}

  Decision first(const Conditions& replicas) override {
    return by_lot(replicas, chooser_.first(replicas).plan);
  }
  std::optional<Decision> round_closed(const RoundFacts& facts) override {
    (void)chooser_.round_closed(facts);  // so that it sees how replicas agree
    if (++rounds_ % kRoundsBetween != 0) return std::nullopt;
    return by_lot(facts.replicas, chooser_.best(facts.replicas).plan);
  }

 private:
  static constexpr std::size_t kRoundsBetween = 20;

  Decision by_lot(const Conditions& replicas, Plan plan) {
    const std::uint64_t delays = 2 * static_cast<std::uint64_t>(plan.delay_steps) + 1;
    plan.delay_steps = static_cast<int>(random_() % delays);
    return as_it_is(replicas, plan, "the bytes of auto, and a delay drawn by lot");
  }

  AutoPlanner chooser_;
  std::mt19937_64 random_;
  std::size_t rounds_ = 0;
};

class AccordionPlanner final : public Planner {
 public:
  using Planner::Planner;

  Decision first(const Conditions& replicas) override {
    return with(replicas, kMuch, "it begins with nearly everything");
  }

  std::optional<Decision> round_closed(const RoundFacts& facts) override {
    sum_ += facts.mean_norm;
    if (++rounds_ % kStretch != 0) return std::nullopt;
    const double norm = std::exchange(sum_, 0.0);
    const double before = std::exchange(previous_, norm);
    const double change = before > 0 ? std::abs(before - norm) / before : 1;
    const double wanted = change >= kCritical ? kMuch : kLittle;
    if (wanted == facts.current.keep_ratio) return std::nullopt;
    return with(facts.replicas, wanted,
                "the gradient's norm changed by " +
                    std::to_string(std::isfinite(change) ? std::lround(100 * change) : 0) + " %");
  }

 private:
  static constexpr std::size_t kStretch = 20;  // rounds that stand for an epoch
  static constexpr double kCritical = 0.5;
  static constexpr double kMuch = 0.99;
  static constexpr double kLittle = 0.1;

  [[nodiscard]] Decision with(const Conditions& replicas, double keep_ratio,
                              const std::string& why) const {
    Plan plan = options().plan;
    plan.keep_ratio = keep_ratio;
    return as_it_is(replicas, plan, why);
  }

  double sum_ = 0;
  double previous_ = 0;
  std::size_t rounds_ = 0;
};

}  // namespace

double agreement_of(std::span<const double> weights, std::span<const double> squares,
                    double mean_square) {
  LONGHAUL_CHECK_EQ(weights.size(), squares.size());
  double all_weights = 0;
  for (const double weight : weights) all_weights += weight;
  // ‖Σ w_i m_i‖² = Σ w_i²‖m_i‖² + Σ_{i≠j} w_i w_j m_i·m_j: 0 of the last for independent messages,
  // and for messages of one direction what their norms allow.
  double alone = 0;
  double norms = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double w = weights[i] / all_weights;
    alone += w * w * squares[i];
    norms += w * std::sqrt(squares[i]);
  }
  const double most = norms * norms - alone;
  if (!(most > 0)) return 1;
  return std::clamp((mean_square - alone) / most, -1.0, 1.0);
}

Decision Planner::first(const Conditions& replicas) {
  return as_it_is(replicas, options_.plan, "set by the recipe");
}

bool Planner::resize(std::size_t replicas) {
  if (replicas == sizes_.replicas()) return false;
  sizes_ = sizes_.with(replicas);
  return true;
}

Decision Planner::as_it_is(const Conditions& replicas, const Plan& plan, std::string reason) const {
  Decision decision =
      predicted(replicas, sizes_.exact(plan.keep_ratio), plan, calibrated_model(plan.merge));
  if (!options_.parts.layers.empty())
    decision.step_time = decision.likely_step_time =
        timeline_of(plan, options_, replicas, sizes_).step_time;
  decision.reason = std::move(reason);
  return decision;
}

std::unique_ptr<Planner> make_planner(const PlannerOptions& options, RoundSizes sizes) {
  switch (options.kind) {
    case PlannerKind::kNone:
      break;
    case PlannerKind::kLayers:
      return std::make_unique<LayerPlanner>(std::move(sizes), options);
    case PlannerKind::kDeco:
      return std::make_unique<DecoPlanner>(std::move(sizes), options);
    case PlannerKind::kAuto:
    case PlannerKind::kFrozen:
    case PlannerKind::kClairvoyant:
      return std::make_unique<AutoPlanner>(std::move(sizes), options);
    case PlannerKind::kRandom:
      return std::make_unique<RandomPlanner>(sizes, options);
    case PlannerKind::kAccordion:
      return std::make_unique<AccordionPlanner>(std::move(sizes), options);
  }
  return std::make_unique<Planner>(std::move(sizes), options);
}

}  // namespace longhaul
