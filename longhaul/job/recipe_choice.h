// The choice of a recipe as people write it: its name, with settings that go over the scenario's
// and the recipe's own. "dd-ef-sgd:keep_ratio=0.05:delay_steps=3".
#pragma once

#include <string>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"

namespace longhaul {

// The part before the settings.
std::string recipe_name(const std::string& text);

// An error where no recipe has that name, or a setting is none.
Result<RecipeOptions> recipe_settings(const std::string& text);

}  // namespace longhaul
