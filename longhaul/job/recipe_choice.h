// The choice of a recipe: its name, with settings that go over the scenario's and the recipe's own.
#pragma once

#include <string>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {

// "dd-ef-sgd:keep_ratio=0.05:delay_steps=3"
struct RecipeChoice {
  std::string name;
  RecipeOptions settings;
  std::string text;  // as it was written
};
Result<RecipeChoice> parse_recipe_choice(const std::string& text);

// The row of the recipe with the scenario's settings of it and then the choice's put over it, and
// the learning rate. An error where they do not fit together.
struct ChosenRecipe {
  Recipe recipe;
  double lr = 0;
};
Result<ChosenRecipe> chosen_recipe(const Scenario& scenario, const RecipeChoice& choice);

}  // namespace longhaul
