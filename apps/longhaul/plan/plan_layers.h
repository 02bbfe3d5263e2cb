// `longhaul plan --profile`: which layers would be averaged in which step, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/longhaul/plan/plan_options.h"

namespace longhaul::apps {

// `request` has parts.
nlohmann::ordered_json layer_plan_json(const PlanOptions& request);
// Rows, and the schedule as a drawing.
std::string layer_plan_text(const PlanOptions& request);

}  // namespace longhaul::apps
