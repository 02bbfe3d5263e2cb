// The planner's knowledge of the replicas: the speed and link of each, and the cost of a round.
#pragma once

#include <vector>

#include "longhaul/base/units.h"

namespace longhaul {

struct ReplicaConditions {
  Seconds compute{};  // of one step
  Seconds latency{};  // one way
  Bandwidth up;
  Bandwidth down;
  // The cost of a round beside that; 0 in the lab, measured over a hub (round_cost.h).
  Seconds round_wait{};  // in its loop, where delay hides it
  Seconds round_work{};  // nothing hides it
};

using Conditions = std::vector<ReplicaConditions>;

}  // namespace longhaul
