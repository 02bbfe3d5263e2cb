#include "longhaul/job/task.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "longhaul/job/scenario_text.h"

namespace longhaul {

Result<Scenario> scenario_of(const TaskRequest& request, const Catalogue& catalogue) {
  Result<std::vector<Setting>> settings = parse_settings(request.settings);
  if (!settings.ok()) return std::move(settings).error().within("--set");
  return load_scenario(request.scenario, catalogue, *settings);
}

Result<std::string> config_text(const TaskRequest& request, const std::vector<std::string>& recipes,
                                const Catalogue& catalogue) {
  Result<Scenario> scenario = scenario_of(request, catalogue);
  if (!scenario.ok()) return scenario.error();
  scenario->recipes = recipes;
  scenario->train.seed = request.seed;
  return scenario_toml(*scenario);
}

Result<v1::Task> task_of(const TaskRequest& request, const Catalogue& catalogue) {
  const std::filesystem::path path = scenario_path(request.scenario, catalogue);
  // The usual way first: its errors name files and lines.
  const Result<Scenario> scenario = scenario_of(request, catalogue);
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
  const Result<Job> job = job_of(task, catalogue);
  if (!job.ok()) return job.error();
  return task;
}

Result<Job> job_of(const v1::Task& task, const Catalogue& catalogue) {
  const Result<std::vector<Setting>> settings =
      parse_settings({task.settings().begin(), task.settings().end()});
  if (!settings.ok()) return settings.error();
  Result<Scenario> scenario =
      parse_scenario(task.scenario(), task.scenario_name() + ".toml", *settings, catalogue);
  if (!scenario.ok()) return scenario.error();
  const Result<RecipeChoice> choice = parse_recipe_choice(task.recipe());
  if (!choice.ok()) return choice.error();
  Result<ChosenRecipe> chosen = chosen_recipe(*scenario, *choice);
  if (!chosen.ok()) return chosen.error();
  scenario->train.seed = task.seed();
  return Job{.scenario = std::move(scenario).value(),
             .recipe = std::move(chosen).value(),
             .recipe_text = task.recipe(),
             .seed = task.seed()};
}

}  // namespace longhaul
