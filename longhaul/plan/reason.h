// Why a plan was chosen, in one sentence that a user understands.
#pragma once

#include <string>
#include <string_view>

#include "longhaul/plan/deco.h"

namespace longhaul {

// A share as text: two digits below 10 %, none after the point above.
std::string percent(double share);

// "keep 3.5 % and merge 4 steps late: …". `why` names what the plan is the best of.
std::string reason_of(const Conditions& replicas, const RoundSizes& sizes, const Decision& decision,
                      std::string_view why);

}  // namespace longhaul
