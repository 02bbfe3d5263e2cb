// How hub and replicas tell people how far a run is, and how it ended.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/units.h"
#include "longhaul/exchange/membership.h"
#include "longhaul/exchange/score.h"

namespace longhaul {

// A line for each row: its name, then its value. Rows without a value are left out.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows);

// "accuracy 84.02 %, loss 0.4521 (10000 samples)"
std::string evaluation_text(const Evaluation& evaluation);
// "16.4 steps/s, 2 min left"; empty where the rate is not known.
std::string pace_text(double steps_per_s, Seconds left);
// Says how a run ended: "the target is reached, after 350 of 3000 steps".
std::string ending_text(FinishCause cause, std::uint64_t done, std::uint64_t steps);
// "steps", "stopped", "target": for events.
std::string cause_name(FinishCause cause);

}  // namespace longhaul
