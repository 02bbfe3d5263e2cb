// Planners: what a hub asks at the start of a run and whenever a round has closed. They hold no
// clock, no thread and no link: facts in, decisions out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/deco.h"
#include "longhaul/plan/layer_schedule.h"
#include "longhaul/plan/round_sizes.h"

namespace longhaul {

// The planners that a recipe can name.
enum class PlannerKind : std::uint8_t {
  kNone,         // the recipe's plan, for ever
  kDeco,         // DeCo's ratio and delay with the recipe's merge rule
  kAuto,         // the least predicted time to the target
  kFrozen,       // what auto chooses at the start
  kClairvoyant,  // auto, told the truth about the links to come: a bound, for the lab only
  kRandom,       // auto's ratio, hence its bytes, with a delay drawn by lot: a planner must beat it
  kLayers,       // which layers have a round in which step, by the recipe's policy
  kAccordion,    // a tenth or nearly everything, by how fast the gradient's norm changes
};

// The facts of a round that has closed.
struct RoundFacts {
  Conditions replicas;
  double agreement = 1;  // agreement_of() its messages
  double mean_norm = 0;  // of the mean
  Plan current;
};

// How alike the replicas' messages are: 0 as if independent, 1 if they have one direction. Free at
// every merge. `squares` are those of the messages' norms, `mean_square` that of their mean with
// these weights.
double agreement_of(std::span<const double> weights, std::span<const double> squares,
                    double mean_square);

// The plan to begin with, and the planner's bounds.
struct PlannerOptions {
  PlannerKind kind = PlannerKind::kNone;
  Plan plan;                   // the recipe's: where a planner leaves a knob alone, it stands here
  bool may_look_ahead = true;  // false for optimizers whose steps cannot be foreseen (AdamW)
  std::uint64_t seed = 1;      // of kRandom
  std::size_t steps = 0;       // of the run; 0: unknown
  // The parts of a recipe by layer, with their shares of a step's time, and how it sends them. With
  // parts, kAuto considers schedules of them; it needs no policy.
  LayerProfile parts{};
  LayerPolicy policy = LayerPolicy::kAsReady;
  bool is_one_way = false;  // LayerLink::is_one_way of its links
};

// Chooses the plan of a run and changes it.
// This one keeps the recipe's plan for ever. Others move it.
class Planner {
 public:
  Planner(RoundSizes sizes, PlannerOptions options)
      : sizes_(std::move(sizes)), options_(std::move(options)) {}
  virtual ~Planner() = default;

  // So many replicas are in a round from now on; at first as many as its sizes are for.
  virtual void expect(std::size_t /*replicas*/) {}

  // Before the first step, when only the links are known.
  virtual Decision first(const Conditions& replicas);
  // A plan to announce with the round's mean, if it is worth a change.
  virtual std::optional<Decision> round_closed(const RoundFacts& /*facts*/) { return std::nullopt; }

 protected:
  [[nodiscard]] const RoundSizes& sizes() const { return sizes_; }
  [[nodiscard]] const PlannerOptions& options() const { return options_; }
  // True if the sizes have changed.
  bool resize(std::size_t replicas);
  // A plan that follows from no prediction, and what is predicted of it.
  [[nodiscard]] Decision as_it_is(const Conditions& replicas, const Plan& plan,
                                  std::string reason) const;

 private:
  RoundSizes sizes_;
  PlannerOptions options_;
};

std::unique_ptr<Planner> make_planner(const PlannerOptions& options, RoundSizes sizes);

}  // namespace longhaul
