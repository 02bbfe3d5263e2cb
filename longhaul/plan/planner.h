// Planners: what a hub asks at the start of a run and whenever a round has closed. They hold no
// clock, no thread and no link: facts in, decisions out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/deco.h"
#include "longhaul/plan/round_sizes.h"

namespace longhaul {

enum class PlannerKind : std::uint8_t {
  kNone,         // the recipe's plan, for ever
  kDeco,         // DeCo's ratio and delay with the recipe's merge rule
  kAuto,         // the least predicted time to the target
  kFrozen,       // what auto chooses at the start
  kClairvoyant,  // auto, told the truth about the links to come: a bound, for the lab only
  kRandom,       // auto's ratio, hence its bytes, with a delay drawn by lot: a planner must beat it
  kAccordion,    // a tenth or nearly everything, by how fast the gradient's norm changes
};

// What is known when a round has closed.
struct RoundFacts {
  Conditions replicas;
  double agreement = 1;  // agreement_of() its messages
  double mean_norm = 0;  // of the mean
  Plan current;
};

struct WeightedSquare {
  double weight = 1;
  double square = 0;  // of a message's norm
};

// How alike the replicas' messages are: 0 as if independent, 1 if they have one direction. Free at
// every merge. `mean_square` is that of their weighted mean.
double agreement_of(std::span<const WeightedSquare> messages, double mean_square);

class Planner {
 public:
  virtual ~Planner() = default;

  // So many replicas are in a round from now on; at first as many as its sizes are for.
  virtual void expect(std::size_t /*replicas*/) {}

  // Before the first step, when only the links are known.
  virtual Decision first(const Conditions& replicas) = 0;
  // A plan to announce with the round's mean, if it is worth a change.
  virtual std::optional<Decision> round_closed(const RoundFacts& facts) = 0;
};

struct PlannerOptions {
  PlannerKind kind = PlannerKind::kNone;
  Plan plan;                   // the recipe's: where a planner leaves a knob alone, it stands here
  bool may_look_ahead = true;  // false for optimizers whose steps cannot be foreseen (AdamW)
  std::uint64_t seed = 1;      // of kRandom
  std::size_t steps = 0;       // of the run; 0: unknown
};

std::unique_ptr<Planner> make_planner(const PlannerOptions& options, RoundSizes sizes);

}  // namespace longhaul
