// DeCo: keep ratio and delay together, from the network. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/iteration_model.h"
#include "longhaul/plan/round_sizes.h"
#include "longhaul/plan/step_time.h"
#include "longhaul/round/plan.h"

namespace longhaul {

// φ(δ, τ) = (1-δ) / (δ (1-δ/2)^τ): what compression and delay cost in convergence.
double convergence_factor(double keep_ratio, int delay_steps);

// δ_c, where φ has a local minimum: only for delays from 6 on, before it falls again near 1.
std::optional<double> convergence_turn(int delay_steps);

// δ*(τ): the largest ratio of the table at which communication hides behind computation; nothing,
// if even the smallest does not.
std::optional<double> largest_hidden_ratio(const Paces& paces, const RoundSizes& sizes,
                                           int delay_steps);

// A plan, and why it was chosen.
struct Decision {
  Plan plan;
  Seconds step_time{};         // predicted
  Seconds likely_step_time{};  // the same where rates may fall: what planners count with
  double relative_steps = 1;   // predicted steps to the target, synchronous training = 1
  bool is_hidden = true;       // does communication hide behind work?
  std::string reason;          // one sentence

  // To the target, in units of a synchronous step: what planners minimise.
  [[nodiscard]] Seconds time() const { return likely_step_time * relative_steps; }
};

// The prediction for a plan whose rounds have this size; without a reason. `fall`: rates may as
// well be so many times lower, and the likely step time is the mean of both.
Decision predicted(const Conditions& replicas, const RoundSize& size, const Plan& plan,
                   const IterationModel& model, double fall = 1);

constexpr int kMostDelay = 32;

// Minimises φ over all hidden plans; ties take the smaller delay. Where nothing can be hidden, the
// least predicted time to the target with this merge rule.
Decision deco(const Conditions& replicas, const RoundSizes& sizes, Merge merge = Merge::kOptimizer,
              int most_delay = kMostDelay);

}  // namespace longhaul
