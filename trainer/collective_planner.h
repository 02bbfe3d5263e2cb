// The planner of a collective, which runs on every rank. Its facts are equal on all ranks, and so
// are its decisions.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/link/round_trips.h"
#include "longhaul/plan/measurements.h"
#include "longhaul/plan/planner.h"
#include "longhaul/plan/round_cost.h"
#include "longhaul/sync/engine.h"
#include "trainer/turn.h"

namespace longhaul::trainer {

class CollectivePlanner {
 public:
  // `computing`: of a step, until one was measured.
  CollectivePlanner(const EngineOptions& options, std::size_t elements, Seconds computing);

  // All ranks' headers of a turn, in rank order.
  void note(const std::vector<Turn>& turns);
  // Before the first step. Precondition: payloads were timed and noted.
  Decision first();
  // `sent` by all ranks in a round that has closed; asked in the order of closing.
  std::optional<Decision> round_closed(RoundId id, std::span<const WeightedPayload> sent,
                                       const CheckedPayload& mean);
  // The same for a round whose values were summed in place.
  std::optional<Decision> round_averaged();

  // The plan that was announced last.
  [[nodiscard]] const Plan& plan() const { return plan_; }
  void go_on_with(const Plan& plan) { plan_ = plan; }

 private:
  [[nodiscard]] Conditions conditions() const;
  std::optional<Decision> adopt(std::optional<Decision> decision);

  std::unique_ptr<Planner> planner_;
  bool is_by_layer_;
  Plan plan_;
  std::vector<Measured> ranks_;
  Seconds guess_;
  RoundTrips trips_;
  RoundCost cost_;
  Seconds clock_{};  // of rank 0
};

}  // namespace longhaul::trainer
