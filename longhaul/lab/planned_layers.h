// The planner's formula for a run by layer, to stand beside what is measured. No figure of time
// comes from here.
#pragma once

#include "longhaul/codec/layer_table.h"
#include "longhaul/job/job.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// Sets part_names, planned_hidden_share and planned_exposed of a run whose plan at the end is by
// layer; of others nothing. The links are those of the scenario.
void fill_in_planned_layers(const Job& job, const LayerTable& layers, RunResult& run);

}  // namespace longhaul::lab
