// A scenario as the text of a file: with everything that was set over it, and all defaults.
#pragma once

#include <string>

#include "longhaul/job/scenario.h"

namespace longhaul {

// Parses to the same scenario, except for its name, and that prints as the same text. Paths are
// absolute, so that the file may lie anywhere. Comments say what each recipe comes to.
std::string scenario_toml(const Scenario& scenario);

}  // namespace longhaul
