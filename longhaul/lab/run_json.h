// The figures of one run as JSON, for results.json and for its last event.
#pragma once

#include <nlohmann/json.hpp>

#include "longhaul/lab/results.h"

namespace longhaul::lab {

nlohmann::ordered_json run_json(const RunResult& run);
// Throws nlohmann's exceptions.
Result<RunResult> run_from_json(const nlohmann::ordered_json& json);

// A planner's decision, as a `plan` event has it.
nlohmann::ordered_json plan_point_json(const PlanPoint& point);
// Throws nlohmann's exceptions.
Result<PlanPoint> plan_point_from_json(const nlohmann::ordered_json& json);

// JSON has no NaN and no infinity.
nlohmann::ordered_json finite_or_null(double value);
double number_or_nan(const nlohmann::ordered_json& json, const char* key);

}  // namespace longhaul::lab
