// Computes the time of a run on other links without training again. With a fixed plan neither
// losses by step nor bytes depend on the links.
#pragma once

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// The run with the times that the links of `scenario` give it: evaluations, losses, time to target,
// step time, efficiency. Only for runs of a fixed plan and as many replicas as the scenario has.
Result<RunResult> replay(const Scenario& scenario, RunResult run);

}  // namespace longhaul::lab
