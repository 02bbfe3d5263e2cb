// What a planner knows of the replicas: how fast each computes, what its link carries, what
// a round costs.
#pragma once

#include <vector>

#include "longhaul/base/units.h"

namespace longhaul {

struct ReplicaConditions {
  Seconds compute{};  // of one step
  Seconds latency{};  // one way
  Bandwidth up;
  Bandwidth down;
  // What a round costs beside that; 0 in the lab, measured over a hub (round_cost.h).
  Seconds round_wait{};  // in its loop, where delay hides it
  Seconds round_work{};  // nothing hides it
};

using Conditions = std::vector<ReplicaConditions>;

}  // namespace longhaul
