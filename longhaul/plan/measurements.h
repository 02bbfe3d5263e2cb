// A hub's measurements of its replicas while they train, in the form that planners ask for.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "longhaul/link/rate_estimator.h"
#include "longhaul/plan/conditions.h"
#include "longhaul/plan/planner.h"
#include "longhaul/round/round_mean.h"

namespace longhaul {

// How long a replica computes for a step: the median of the last few. One slow step, of a machine
// that had something else to do, says nothing of the next. Short steps count together, by their
// mean: seven steps of a millisecond are too short a time to know a machine by.
class StepTimer {
 public:
  void add(Seconds step);
  [[nodiscard]] Seconds typical() const;  // 0 before the first

 private:
  static constexpr std::size_t kStretches = 7;
  static constexpr Seconds kStretch{0.05};
  std::vector<Seconds> last_;  // means of stretches, the oldest first
  Seconds sum_{};              // of the stretch that has begun
  int steps_ = 0;
};

// The link and the computing time of a replica, as they were measured.
// Belongs to one replica. Rates come from transfers, of which there is at least one in each
// direction before anyone plans.
struct Measured {
  StepTimer compute;
  Seconds latency{};  // one way: half of the least round trip
  RateEstimator up;
  RateEstimator down;

  [[nodiscard]] bool is_complete() const {
    return up.low() && down.low() && compute.typical().count() > 0;
  }
  [[nodiscard]] ReplicaConditions conditions() const {
    return {.compute = compute.typical(), .latency = latency, .up = *up.low(), .down = *down.low()};
  }
};

// The facts that a planner asks for of a round that has closed: `sent` by its members, with their
// weights.
RoundFacts facts_of(std::span<const WeightedPayload> sent, const CheckedPayload& mean,
                    Conditions replicas, const Plan& current);

}  // namespace longhaul
