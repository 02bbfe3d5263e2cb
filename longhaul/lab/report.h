// The report of a lab: one page that opens offline, with the table of results, curves and time
// lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "longhaul/lab/results.h"
#include "longhaul/lab/scenario.h"

namespace longhaul::lab {

std::string report_html(const Scenario& scenario, const std::vector<RunResult>& runs,
                        std::string_view version);

// Text for HTML, attribute values included.
std::string html_escaped(std::string_view text);

}  // namespace longhaul::lab
