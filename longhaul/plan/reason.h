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

// The same for a plan whose layers travel by themselves. `hidden`: the share of communication.
std::string reason_by_layer(const Decision& decision, Seconds compute, double hidden,
                            std::string_view why);

// "; keep 5 % and merge 1 step late would take 1.3 times as long": the best that was not chosen.
std::string against(const Decision& chosen, const Decision& other);

}  // namespace longhaul
