// What a hub has measured of its replicas while they train, in the form that planners ask for.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "longhaul/link/rate_estimator.h"
#include "longhaul/plan/conditions.h"
#include "longhaul/plan/planner.h"
#include "longhaul/round/round_mean.h"

namespace longhaul {

// Of one replica. Rates come from transfers, of which there is at least one in each direction
// before anyone plans.
struct Measured {
  Seconds compute{};  // of one step
  Seconds latency{};  // one way: half of the least round trip
  RateEstimator up;
  RateEstimator down;

  [[nodiscard]] bool is_complete() const { return up.low() && down.low() && compute.count() > 0; }
  [[nodiscard]] ReplicaConditions conditions() const {
    return {.compute = compute, .latency = latency, .up = *up.low(), .down = *down.low()};
  }
};

// What a planner asks of a round that has closed. The submissions' payloads were parsed before.
RoundFacts facts_of(std::span<const Submission> submissions, std::span<const float> mean,
                    Conditions replicas, const Plan& current);

}  // namespace longhaul
