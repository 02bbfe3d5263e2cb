// The time of a run on other links, without training again: the losses by step of a fixed plan do
// not depend on the links, and neither do the bytes.
#pragma once

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// The run with the times that the links of `scenario` give it: evaluations, losses, time to target,
// step time, efficiency. Only for runs of a fixed plan and as many replicas as the scenario has.
Result<RunResult> replay(const Scenario& scenario, RunResult run);

}  // namespace longhaul::lab
