// Results as JSON (the keys that `lab --json` promises) and as events.
#pragma once

#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/lab/oracle.h"
#include "longhaul/lab/results.h"
#include "longhaul/lab/scenario.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::lab {

enum class Curves : std::uint8_t { kLeftOut, kIncluded };

// {"scenario": …, "title": …, "target": …, "runs": […]}. Numbers that are not finite become null.
nlohmann::ordered_json results_json(const Scenario& scenario, const std::vector<RunResult>& runs,
                                    Curves curves);

// {"best_fixed": {"recipe": …, "time_s": …}, "clairvoyant": …, "judged": [{…, "regret": …}]}
nlohmann::ordered_json verdict_json(const Verdict& verdict);

// run_started, plan…, step…, evaluation…, activity…, run_finished; times are virtual.
void write_run_events(EventLog& log, const RunResult& run);

// The runs of a log that finished, with all that write_run_events wrote of them.
Result<std::vector<RunResult>> read_run_events(std::istream& in);

}  // namespace longhaul::lab
