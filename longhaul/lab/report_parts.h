// The parts of the report: those that need no script, and the data that the script draws.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/job/scenario.h"
#include "longhaul/lab/oracle.h"
#include "longhaul/lab/results.h"
#include "longhaul/lab/summary.h"

namespace longhaul::lab {

// Says whether the times of the page are virtual or real.
std::string clock_html(bool is_real);

// `parameters` of the model, 0 where no run has told; α and β follow from it.
std::string facts_html(const Scenario& scenario, std::size_t parameters);

std::string table_html(const TargetOptions& target, const std::vector<Summary>& summaries,
                       const std::vector<RunResult>& runs);

// For a rehearsal: predicted beside measured, and that all models are equal. Empty for a lab.
std::string prediction_html(const std::vector<Summary>& summaries,
                            const std::vector<RunResult>& runs);

// The verdict of hindsight; empty without one.
std::string oracle_html(const std::optional<Verdict>& verdict);

// A section with the decisions of planners, of the first run of each summary; empty if there are
// none.
std::string plans_html(const std::vector<Summary>& summaries, const std::vector<RunResult>& runs);

// A word with its meaning on hover: one of the glossary.
std::string term(const std::string& word);
std::string glossary_html();

// `shown` are the runs of the summaries, `all` has the oracle's fixed plans too.
std::string page_data(const Scenario& scenario, const std::vector<Summary>& summaries,
                      const std::vector<RunResult>& shown, const std::vector<RunResult>& all,
                      const std::optional<Verdict>& verdict);

std::string display_name(const Summary& summary);  // recipe and the settings of a search
std::string short_number(double value);            // four significant digits
std::string spaced(const std::string& quantity);   // "60 ms" for "60ms"

}  // namespace longhaul::lab
