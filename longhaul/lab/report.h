// The report of a lab or a rehearsal: one page that opens offline, with the table of results, the
// reasons, curves and time lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/job/scenario.h"
#include "longhaul/lab/oracle.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// Where a page comes from.
struct ReportOptions {
  std::string version;
  std::string command;             // as typed; empty: not known
  std::optional<Verdict> verdict;  // of --oracle; fixed plans are then a map, not rows
};

std::string report_html(const Scenario& scenario, const std::vector<RunResult>& runs,
                        const ReportOptions& options);

// Text for HTML, attribute values included.
std::string html_escaped(std::string_view text);

}  // namespace longhaul::lab
