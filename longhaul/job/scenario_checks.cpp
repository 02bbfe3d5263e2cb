#include "longhaul/job/scenario_checks.h"

#include <algorithm>
#include <string_view>

#include "longhaul/base/text.h"
#include "longhaul/job/recipe_choice.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {
namespace {

// Short forms that people try and that no edit distance finds.
std::string synonym(std::string_view name) {
  if (name == "learning_rate") return "train.lr";
  if (name == "batch_size") return "train.batch";
  if (name == "bandwidth") return "link.up";
  if (name == "replicas") return "replica.count";
  return "";
}

std::string nearest(const std::string& table, const std::string& name,
                    const std::vector<ScenarioKey>& keys) {
  const ScenarioKey* best = nullptr;
  std::size_t least = 0;
  for (const ScenarioKey& key : keys) {
    // The wrong key of the right table is the likelier slip.
    const std::size_t distance =
        2 * edit_distance(key.name, name) + 2 * edit_distance(key.table, table);
    const bool is_candidate = key.name == name || (is_near(edit_distance(key.name, name), name) &&
                                                   is_near(edit_distance(key.table, table), table));
    if (!is_candidate || (best != nullptr && distance >= least)) continue;
    best = &key;
    least = distance;
  }
  return best == nullptr ? synonym(name) : best->full_name();
}

std::string nearest_table(const std::string& name, const std::vector<ScenarioKey>& keys) {
  for (const ScenarioKey& key : keys) {
    if (!key.table.empty() && is_near(edit_distance(key.table, name), name)) return key.table;
  }
  return "";
}

// Names of recipes, in the list and in [recipe.NAME].
Status check_recipes(const Scenario& scenario, const std::string& file_name, const Places& places) {
  for (const std::string& text : scenario.recipes) {
    const Result<RecipeOptions> settings = recipe_settings(text);
    const auto place = places.find("recipes");
    if (!settings.ok()) return Error(settings.error()).within(place->second + ": recipes");
  }
  for (const auto& [name, settings] : scenario.overrides) {
    const Result<Recipe> row = find_recipe(name);
    const auto place =
        places.lower_bound("recipe." + name + '.');  // its first key, or the next one
    const bool has_keys = place != places.end() && place->first.starts_with("recipe." + name + '.');
    if (!row.ok()) return Error(row.error()).within(has_keys ? place->second : file_name);
  }
  return Done{};
}

Error misfit(const std::string& where, const std::string& what) {
  return Error{ErrorCode::kInvalidArgument, where + ": " + what};
}

Status check_layers(const Scenario& scenario, const std::string& file_name) {
  const std::vector<LayerProfile::Layer>& layers = scenario.times.layers;
  Seconds all{};
  for (const LayerProfile::Layer& layer : layers) {
    if (layer.name.empty()) return misfit(file_name, "layer.name: expected a name, got none");
    if (std::ranges::count(layers, layer.name, &LayerProfile::Layer::name) > 1)
      return misfit(file_name, "layer.name: \"" + layer.name + "\" occurs twice");
    all += layer.forward + layer.backward;
  }
  if (layers.empty() || all > Seconds(0)) return Done{};
  return misfit(file_name, "layer: expected a time above 0 in one of the tables, got none");
}

}  // namespace

std::string unknown_key(const std::string& full_name, const std::string& table,
                        const std::string& name, const std::vector<ScenarioKey>& keys) {
  std::string suggestion = nearest(table, name, keys);
  if (table.empty() && suggestion.empty()) suggestion = nearest_table(name, keys);
  // [recipe.NAME]: say it with the name that was written, if one was.
  if (suggestion.starts_with("recipe.")) {
    const bool has_name =
        full_name.starts_with("recipe.") && std::ranges::count(full_name, '.') > 1;
    suggestion = (has_name ? full_name.substr(0, full_name.rfind('.')) : "recipe.NAME") +
                 suggestion.substr(6);
  }
  return full_name + ": unknown key" +
         (suggestion.empty() ? "; docs/scenario.md lists all keys"
                             : "; did you mean " + suggestion + '?');
}

Status check_scenario(const Scenario& scenario, const std::string& file_name, const Places& places,
                      const Catalogue& catalogue) {
  const auto place = [&](const std::string& key) {
    const auto found = places.find(key);
    return found == places.end() ? file_name : found->second;
  };
  if (scenario.replicas.empty())
    return misfit(file_name, "replica: expected at least one [[replica]], got none");
  if (!places.contains("target.value"))
    return misfit(file_name, "target.value: expected a number above 0, got none");
  const TargetOptions& target = scenario.target;
  if (target.metric == Metric::kAccuracy && target.value > 1)
    return misfit(place("target.value"),
                  "target.value: expected an accuracy above 0 and at most 1, got a larger one");
  if (scenario.train.warmup_steps > scenario.train.steps)
    return misfit(place("train.warmup_steps"),
                  "train.warmup_steps: expected at most train.steps (" +
                      std::to_string(scenario.train.steps) + "), got " +
                      std::to_string(scenario.train.warmup_steps));
  LONGHAUL_TRY(check_layers(scenario, file_name));
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  const bool is_text = has(catalogue.text_data, scenario.data.kind);
  if (is_text != has(catalogue.text_models, scenario.model.name))
    return misfit(
        place("model.name"),
        "model.name: expected " + (is_text ? joined(catalogue.text_models) : "a model of images") +
            " for data.kind = \"" + scenario.data.kind + "\", got " + scenario.model.name);
  return check_recipes(scenario, file_name, places);
}

}  // namespace longhaul
