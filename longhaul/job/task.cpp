#include "longhaul/job/task.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "longhaul/job/scenario_text.h"

namespace longhaul {

Result<Scenario> scenario_of(const TaskOptions& request, const Catalogue& catalogue) {
  Result<std::vector<Setting>> settings = parse_settings(request.settings);
  if (!settings.ok()) return std::move(settings).error().within("--set");
  return load_scenario(request.scenario, catalogue, *settings);
}

Result<std::string> config_text(const TaskOptions& request, const std::vector<std::string>& recipes,
                                const Catalogue& catalogue) {
  Scenario scenario = LONGHAUL_TRY(scenario_of(request, catalogue));
  scenario.recipes = recipes;
  scenario.train.seed = request.seed;
  return scenario_toml(scenario);
}

Result<v1::Task> task_of(const TaskOptions& request, const Catalogue& catalogue) {
  const std::filesystem::path path = scenario_path(request.scenario, catalogue);
  // The usual way first: its errors name files and lines.
  const Scenario scenario = LONGHAUL_TRY(scenario_of(request, catalogue));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  v1::Task task;
  task.set_scenario_name(scenario.name);
  task.set_scenario(text.str());
  for (const std::string& setting : request.settings) task.add_settings(setting);
  task.set_recipe(request.recipe.empty() ? "auto" : request.recipe);
  task.set_seed(request.seed);
  (void)LONGHAUL_TRY(job_of(task, catalogue));
  return task;
}

Result<Job> job_of(const v1::Task& task, const Catalogue& catalogue) {
  const std::vector<Setting> settings =
      LONGHAUL_TRY(parse_settings({task.settings().begin(), task.settings().end()}));
  Scenario scenario = LONGHAUL_TRY(
      parse_scenario(task.scenario(), task.scenario_name() + ".toml", settings, catalogue));
  const RecipeChoice choice = LONGHAUL_TRY(parse_recipe_choice(task.recipe()));
  ChosenRecipe chosen = LONGHAUL_TRY(chosen_recipe(scenario, choice));
  scenario.train.seed = task.seed();
  return Job{.scenario = std::move(scenario),
             .recipe = std::move(chosen),
             .recipe_text = task.recipe(),
             .seed = task.seed()};
}

}  // namespace longhaul
