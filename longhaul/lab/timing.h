// Figures that follow from the times of a run's steps and evaluations.
#pragma once

#include "longhaul/job/scenario.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// Sets step_time, efficiency, time_to_target and steps_to_target, and the rates of a run that knows
// its bytes by step.
void fill_in_times(const Scenario& scenario, RunResult& run);

}  // namespace longhaul::lab
