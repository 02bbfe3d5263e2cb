// The hub's planner in the lab. It measures links by their transfers, compares the messages of each
// round, and lets the recipe's planner move the plan.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/exchange/simulated.h"
#include "longhaul/job/scenario.h"
#include "longhaul/lab/results.h"
#include "longhaul/plan/measurements.h"
#include "longhaul/plan/planner.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::lab {

class LivePlanner {
 public:
  // `peers` are the links of the scenario, which are probed once, before the first step.
  LivePlanner(const PlannerOptions& options, const Scenario& scenario,
              const std::vector<SimulatedPeer>& peers, RoundSizes sizes);

  // The plan of the rounds to come; at first, the one to begin with.
  [[nodiscard]] const Plan& plan() const { return plan_; }

  // Called by the network.
  void note(const Transfer& transfer);
  std::optional<Plan> round_closed(const ClosedRound& round);

  // All decisions, the first one included.
  [[nodiscard]] const std::vector<PlanPoint>& decisions() const { return decisions_; }

 private:
  void learn_until(Seconds time);
  [[nodiscard]] Conditions conditions(Seconds time) const;
  void adopt(std::size_t step, Seconds time, const Decision& decision);

  std::unique_ptr<Planner> planner_;
  bool knows_links_;
  std::vector<SimulatedPeer> peers_;
  std::vector<Measured> measured_;  // of each peer's link
  std::deque<Transfer> seen_;       // those that may not have ended yet as far as the hub knows
  Plan plan_;
  std::vector<PlanPoint> decisions_;
};

}  // namespace longhaul::lab
