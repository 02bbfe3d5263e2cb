#include "longhaul/job/recipe_choice.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "longhaul/base/text.h"
#include "longhaul/job/scenario_keys.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {
namespace {

Error bad(const std::string& text, const std::string& expected) {
  return Error{ErrorCode::kInvalidArgument, "recipe " + text + ": expected " + expected};
}

std::vector<ScenarioKey> recipe_keys() {
  std::vector<ScenarioKey> keys = scenario_keys({});
  std::erase_if(keys, [](const ScenarioKey& key) { return key.table != "recipe"; });
  return keys;
}

// The keys of [recipe.NAME], written behind colons.
Status apply(const std::string& whole, const std::string& name, const std::string& value,
             RecipeOptions& settings) {
  const std::vector<ScenarioKey> keys = recipe_keys();
  const auto key = std::ranges::find(keys, name, &ScenarioKey::name);
  if (key == keys.end()) {
    std::vector<std::string> names;
    names.reserve(keys.size());
    for (const ScenarioKey& known : keys) names.push_back(known.name);
    return bad(whole,
               "one of " + joined(names) + ", got \"" + name + '"' + did_you_mean(name, names));
  }
  Draft draft;
  draft.recipe = settings;
  if (!key->set(draft, {.text = value}))
    return bad(whole, name + " as " + key->expected + ", got \"" + value + '"');
  settings = draft.recipe;
  return Done{};
}

}  // namespace

std::string recipe_name(const std::string& text) { return text.substr(0, text.find(':')); }

Result<RecipeOptions> recipe_settings(const std::string& text) {
  RecipeOptions settings;
  std::istringstream parts(text);
  std::string name;
  std::getline(parts, name, ':');
  (void)LONGHAUL_TRY(find_recipe(name));
  std::set<std::string> keys;
  for (std::string part; std::getline(parts, part, ':');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return bad(text, "key=value after each colon");
    const std::string key = part.substr(0, equals);
    if (!keys.insert(key).second) return bad(text, "each key once, got " + key + " twice");
    LONGHAUL_TRY(apply(text, key, part.substr(equals + 1), settings));
  }
  return settings;
}

}  // namespace longhaul
