// `longhaul plan --profile`: which layers would be averaged in which step, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "apps/longhaul/plan/plan_options.h"
#include "longhaul/plan/layer_schedule.h"

namespace longhaul::apps {

// These take a request with parts, and a schedule for them: that of the recipe, or that which
// `auto` has decided for.
LayerSchedule schedule_for(const PlanOptions& request);
LayerSchedule schedule_of(const PlanOptions& request, const Decision& decision);

// `relative_steps`: if it is known how many more steps the plan needs.
nlohmann::ordered_json layer_plan_json(const PlanOptions& request, const LayerSchedule& schedule,
                                       std::optional<double> relative_steps);
// Rows, and the schedule as a drawing.
std::string layer_plan_text(const PlanOptions& request, const LayerSchedule& schedule);

}  // namespace longhaul::apps
