#include <algorithm>
#include <sstream>

#include "longhaul/lab/run.h"
#include "longhaul/lab/scenario_keys.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::lab {
namespace {

Error bad(const std::string& text, const std::string& expected) {
  return Error{ErrorCode::kInvalidArgument, "recipe " + text + ": expected " + expected};
}

std::vector<ScenarioKey> recipe_keys() {
  std::vector<ScenarioKey> keys = scenario_keys();
  std::erase_if(keys, [](const ScenarioKey& key) { return key.table != "recipe"; });
  return keys;
}

// The keys of [recipe.NAME], written behind colons.
Status apply(const std::string& whole, const std::string& name, const std::string& value,
             RecipeSettings& settings) {
  const std::vector<ScenarioKey> keys = recipe_keys();
  const auto key = std::ranges::find(keys, name, &ScenarioKey::name);
  if (key == keys.end()) {
    std::string names;
    for (const ScenarioKey& known : keys) names += (names.empty() ? "" : ", ") + known.name;
    return bad(whole, "one of " + names + ", got \"" + name + '"');
  }
  Draft draft;
  draft.recipe = settings;
  if (!key->set(draft, {.text = value}))
    return bad(whole, name + " as " + key->expected + ", got \"" + value + '"');
  settings = draft.recipe;
  return Done{};
}

}  // namespace

Result<RecipeChoice> parse_recipe_choice(const std::string& text) {
  RecipeChoice choice{.text = text};
  std::istringstream parts(text);
  std::getline(parts, choice.name, ':');
  const Result<Recipe> row = find_recipe(choice.name);
  if (!row.ok()) return row.error();
  for (std::string part; std::getline(parts, part, ':');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return bad(text, "key=value after each colon");
    const Status applied =
        apply(text, part.substr(0, equals), part.substr(equals + 1), choice.settings);
    if (!applied.ok()) return applied.error();
  }
  return choice;
}

}  // namespace longhaul::lab
