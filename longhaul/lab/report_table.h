// The parts of the report that are drawn without a script: facts of the scenario and tables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "longhaul/lab/results.h"
#include "longhaul/lab/scenario.h"
#include "longhaul/lab/summary.h"

namespace longhaul::lab {

// `parameters` of the model, 0 where no run has told; α and β follow from it.
std::string facts_html(const Scenario& scenario, std::size_t parameters);

std::string table_html(const TargetSettings& target, const std::vector<Summary>& summaries,
                       const std::vector<RunResult>& runs);

// A section with the decisions of planners, of the first run of each summary; empty if there are
// none.
std::string plans_html(const std::vector<Summary>& summaries, const std::vector<RunResult>& runs);

std::string display_name(const Summary& summary);  // recipe and the settings of a search
std::string short_number(double value);            // four significant digits

}  // namespace longhaul::lab
