// What a planner knows of the replicas: how fast each computes and what its link carries.
#pragma once

#include <vector>

#include "longhaul/base/units.h"

namespace longhaul {

struct ReplicaConditions {
  Seconds compute{};  // of one step
  Seconds latency{};  // one way
  Bandwidth up;
  Bandwidth down;
};

using Conditions = std::vector<ReplicaConditions>;

}  // namespace longhaul
