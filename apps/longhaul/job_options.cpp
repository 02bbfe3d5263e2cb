#include "apps/longhaul/job_options.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "apps/longhaul/installed.h"
#include "longhaul/lab/scenario_text.h"
#include "longhaul/lab/study.h"

namespace longhaul::apps {
namespace {

Result<lab::Scenario> requested_scenario(const TaskRequest& request) {
  std::vector<lab::Setting> settings;
  for (const std::string& text : request.settings) {
    Result<lab::Setting> setting = lab::parse_setting(text);
    if (!setting.ok()) return std::move(setting).error().within("--set");
    settings.push_back(std::move(setting).value());
  }
  return lab::load_scenario(request.scenario, scenario_directory().string(), settings);
}

}  // namespace

Result<std::string> config_text(const TaskRequest& request,
                                const std::vector<std::string>& recipes) {
  Result<lab::Scenario> scenario = requested_scenario(request);
  if (!scenario.ok()) return scenario.error();
  scenario->recipes = recipes;
  scenario->train.seed = request.seed;
  return lab::scenario_toml(*scenario);
}

Result<v1::Task> task_of(const TaskRequest& request) {
  const std::filesystem::path path =
      lab::scenario_path(request.scenario, scenario_directory().string());
  // The usual way first: its errors name files and lines.
  const Result<lab::Scenario> scenario = requested_scenario(request);
  if (!scenario.ok()) return scenario.error();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  v1::Task task;
  task.set_scenario_name(scenario->name);
  task.set_scenario(text.str());
  for (const std::string& setting : request.settings) task.add_settings(setting);
  task.set_recipe(request.recipe.empty() ? "auto" : request.recipe);
  task.set_seed(request.seed);
  const Result<lab::Job> job = job_of(task);
  if (!job.ok()) return job.error();
  return task;
}

Result<lab::Job> job_of(const v1::Task& task) {
  std::vector<lab::Setting> settings;
  for (const std::string& text : task.settings()) {
    Result<lab::Setting> setting = lab::parse_setting(text);
    if (!setting.ok()) return setting.error();
    settings.push_back(std::move(setting).value());
  }
  Result<lab::Scenario> scenario =
      lab::parse_scenario(task.scenario(), task.scenario_name() + ".toml", settings);
  if (!scenario.ok()) return scenario.error();
  const Result<lab::RecipeChoice> choice = lab::parse_recipe_choice(task.recipe());
  if (!choice.ok()) return choice.error();
  Result<lab::ChosenRecipe> chosen = lab::chosen_recipe(*scenario, *choice);
  if (!chosen.ok()) return chosen.error();
  scenario->train.seed = task.seed();
  return lab::Job{.scenario = std::move(scenario).value(),
                  .recipe = std::move(chosen).value(),
                  .recipe_text = task.recipe(),
                  .seed = task.seed()};
}

}  // namespace longhaul::apps
