// Results as JSON (the keys that `lab --json` promises) and as events.
#pragma once

#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/lab/oracle.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// {"scenario": …, "title": …, "clock": …, "target": …, "runs": […]}. Numbers that are not finite
// become null.
nlohmann::ordered_json results_json(const Scenario& scenario, const std::vector<RunResult>& runs);
// The same with the losses, evaluations and rates of every run.
nlohmann::ordered_json results_json_with_curves(const Scenario& scenario,
                                                const std::vector<RunResult>& runs);

// results.csv: a head, then a row per run. Columns are the keys of results.json whose values are
// not lists; null is empty. Text with a comma, a quote or a line end is quoted.
std::string results_csv(const Scenario& scenario, const std::vector<RunResult>& runs);

// {"best_fixed": {"recipe": …, "time_s": …}, "clairvoyant": …, "judged": [{…, "regret": …}]}
nlohmann::ordered_json verdict_json(const Verdict& verdict);

// run_started, plan…, step…, evaluation…, activity…, rate…, run_finished. docs/results_format.md
// has their keys.
void write_run_events(std::ostream& out, const RunResult& run);

// The runs of a log that finished, with all that write_run_events wrote of them.
Result<std::vector<RunResult>> read_run_events(std::istream& in);

}  // namespace longhaul::lab
