// A layer schedule as text: for each step of a period what is computed and which lines are busy.
#pragma once

#include <string>

#include "longhaul/plan/layer_schedule.h"

namespace longhaul::apps {

// Lines of less than 90 columns, however many layers there are.
std::string schedule_drawing(const LayerProfile& parts, const LayerLink& link,
                             const LayerSchedule& schedule);

}  // namespace longhaul::apps
