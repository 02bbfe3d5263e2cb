// The links of a scenario as models that the simulated network can run.
#pragma once

#include <cstdint>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/exchange/simulated.h"
#include "longhaul/job/scenario.h"
#include "longhaul/plan/conditions.h"

namespace longhaul::lab {

// One peer per replica; reads trace files. Random rates depend on `seed` and the replica.
Result<std::vector<SimulatedPeer>> peers_of(const Scenario& scenario, std::uint64_t seed);

// The same replicas on links without cost.
std::vector<SimulatedPeer> free_peers_of(const Scenario& scenario);

// The same links, as a planner sees them that believes the scenario.
Conditions conditions_of(const Scenario& scenario);

}  // namespace longhaul::lab
