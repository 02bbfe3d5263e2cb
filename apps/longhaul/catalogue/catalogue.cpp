// longhaul scenarios and longhaul recipes: what there is, and what it says.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/installed.h"
#include "longhaul/base/units.h"
#include "longhaul/job/scenario.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::apps {
namespace {

using CatalogueJson = nlohmann::ordered_json;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

void print_catalogue(const CatalogueJson& json) {
  std::cout << json.dump(2, ' ', false, CatalogueJson::error_handler_t::replace) << '\n';
}

CatalogueJson json_of_scenario(const Scenario& scenario, const std::string& file) {
  return {
      {"name", scenario.name},
      {"title", scenario.title},
      {"model", scenario.model.name},
      {"data", scenario.data.kind},
      {"replicas", scenario.replicas.size()},
      {"steps", scenario.train.steps},
      {"target", {{"metric", name_of(scenario.target.metric)}, {"value", scenario.target.value}}},
      {"recipes", scenario.recipes},
      {"file", file}};
}

int list_scenarios(bool json) {
  const Catalogue known = catalogue();
  CatalogueJson rows = CatalogueJson::array();
  std::string text;
  for (const std::string& name : built_in_scenarios(known)) {
    const Result<Scenario> scenario = load_scenario(name, known, {});
    if (!scenario.ok()) return complain("scenarios", scenario.error(), kExitFailed);
    rows.push_back(json_of_scenario(*scenario, scenario_path(name, known).string()));
    text += padded(name, 17) + padded(scenario->model.name, 9) +
            padded(std::to_string(scenario->replicas.size()), 10) + scenario->title + '\n';
  }
  if (json) {
    print_catalogue({{"scenarios", rows}});
  } else {
    std::cout << padded("name", 17) << padded("model", 9) << "replicas  title\n" << text;
  }
  return kExitDone;
}

int show_scenario(const std::string& name, bool is_json) {
  const Catalogue known = catalogue();
  const Result<Scenario> scenario = load_scenario(name, known, {});
  if (!scenario.ok()) return complain("scenarios show", scenario.error(), kExitWrongUse);
  const std::filesystem::path path = scenario_path(name, known);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (is_json) {
    CatalogueJson json = json_of_scenario(*scenario, path.string());
    json["text"] = text;
    print_catalogue(json);
  } else {
    std::cout << text;
  }
  return kExitDone;
}

const char* planner_name(PlannerKind kind) {
  switch (kind) {
    case PlannerKind::kNone:
      return "none";
    case PlannerKind::kDeco:
      return "deco";
    case PlannerKind::kAuto:
      return "auto";
    case PlannerKind::kFrozen:
      return "frozen";
    case PlannerKind::kClairvoyant:
      return "clairvoyant";
    case PlannerKind::kRandom:
      return "random";
    case PlannerKind::kLayers:
      return "layers";
    case PlannerKind::kAccordion:
      return "accordion";
  }
  return "";
}

// A float as it stands in the table: 0.95, not 0.949999988.
double short_number(float value) { return std::stod(formatted("%g", value)); }

// null: the planner chooses it.
CatalogueJson json_of_recipe(const Recipe& recipe) {
  const bool has_schedule = recipe.planner == PlannerKind::kLayers;  // that is all it chooses
  const bool is_fixed = recipe.planner == PlannerKind::kNone || has_schedule;
  const bool chooses_delay = recipe.layers == LayerPolicy::kScheduledLate;
  const bool keeps_delay =
      (is_fixed && !chooses_delay) || recipe.planner == PlannerKind::kAccordion;
  const bool keeps_merge = is_fixed || keeps_delay || recipe.planner == PlannerKind::kDeco;
  const bool keeps_period = recipe.planner != PlannerKind::kAuto;
  CatalogueJson plan = plan_json(recipe.plan);
  if (!is_fixed) plan["keep_ratio"] = nullptr;
  if (!keeps_delay) plan["delay_steps"] = nullptr;
  if (!keeps_period) plan["period_steps"] = nullptr;
  if (!keeps_merge) plan["merge"] = nullptr;
  CatalogueJson json{{"name", recipe.name},
                     {"summary", recipe.summary},
                     {"planner", planner_name(recipe.planner)},
                     {"codec", recipe.codec.name()}};
  json.update(plan);
  json.update({{"residual", recipe.keeps_residual},
               {"residual_decay", short_number(recipe.residual_decay)},
               {"compressed_mean", recipe.is_two_way},
               {"fragments", recipe.local.fragments},
               {"by_layer", recipe.is_by_layer}});
  return json;
}

std::string cell(const CatalogueJson& value) {
  if (value.is_null()) return "chosen";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

int list_recipes(bool json) {
  CatalogueJson rows = CatalogueJson::array();
  for (const Recipe& recipe : all_recipes()) rows.push_back(json_of_recipe(recipe));
  if (json) {
    print_catalogue({{"recipes", rows}});
    return kExitDone;
  }
  for (const CatalogueJson& row : rows) {
    std::cout << padded(cell(row["name"]), 19) << cell(row["summary"]) << '\n'
              << std::string(19, ' ') << "planner " << cell(row["planner"]) << ", codec "
              << cell(row["codec"]) << ", delay " << cell(row["delay_steps"]) << ", period "
              << cell(row["period_steps"]) << ", merge " << cell(row["merge"]) << '\n';
  }
  return kExitDone;
}

int show_recipe(const std::string& name, bool is_json) {
  const Result<Recipe> recipe = find_recipe(name);
  if (!recipe.ok()) return complain("recipes show", recipe.error());
  CatalogueJson json = json_of_recipe(*recipe);
  const LocalSteps& local = recipe->local;
  json["delay_periods"] = local.delay_periods;
  json["mixing"] =
      local.mixing ? CatalogueJson(short_number(*local.mixing)) : CatalogueJson(nullptr);
  json["outer_momentum"] = short_number(local.outer_momentum);
  json["outer_lr"] = short_number(local.outer_lr);
  if (local.outer_lr_by_replicas != nullptr) json["outer_lr"] = nullptr;
  if (is_json) {
    print_catalogue(json);
    return kExitDone;
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_array() && value.empty()) continue;
    std::string text = value.is_number_float() ? formatted("%g", value.get<double>()) : cell(value);
    if (value.is_null() && key == "outer_lr") text = "by the number of replicas";
    if (value.is_null() && key == "mixing") text = "none";
    std::cout << padded(key, 17) << text << '\n';
  }
  std::cout << "\n\"chosen\": the planner chooses it. Change settings with --recipe '" << name
            << ":key=value' or in [recipe." << name << "]\n(docs/scenario.md lists the keys).\n";
  return kExitDone;
}

// No name: all of them.
int run_scenarios(const std::optional<std::string>& name, bool is_json) {
  return name ? show_scenario(*name, is_json) : list_scenarios(is_json);
}

int run_recipes(const std::optional<std::string>& name, bool is_json) {
  return name ? show_recipe(*name, is_json) : list_recipes(is_json);
}

// `list` has `show` below it, whose argument is called `item`.
void add_options(CLI::App* list, CLI::App* show, const char* item, Run& run,
                 int (*run_command)(const std::optional<std::string>&, bool)) {
  // Shared with the callbacks.
  const auto name = std::make_shared<std::optional<std::string>>();
  const auto is_json = std::make_shared<bool>(false);
  list->require_subcommand(0, 1);
  show->add_option(item, *name, "Its name")->required();
  for (CLI::App* command : {list, show}) {
    command->add_flag("--json", *is_json, "One JSON object in place of the text");
    command->callback([=, &run] { run = [=] { return run_command(*name, *is_json); }; });
  }
}

}  // namespace

void add_catalogue(CLI::App& program, Run& run) {
  CLI::App* scenarios =
      program.add_subcommand("scenarios", "List the built-in scenarios, or show one");
  add_options(scenarios, scenarios->add_subcommand("show", "Print the file of a scenario"),
              "scenario", run, run_scenarios);
  CLI::App* recipes =
      program.add_subcommand("recipes", "List the recipes (training methods), or show one");
  add_options(recipes, recipes->add_subcommand("show", "Print all settings of a recipe"), "recipe",
              run, run_recipes);
}

}  // namespace longhaul::apps
