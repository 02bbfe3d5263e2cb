#include "longhaul/job/task.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "longhaul/job/scenario_text.h"

namespace longhaul {

Result<Scenario> scenario_of(const TaskOptions& request, const Catalogue& catalogue) {
  Status are_settings = check_settings(request.settings);
  if (!are_settings.ok()) return std::move(are_settings).error().within("--set");
  return load_scenario(request.scenario, catalogue, request.settings);
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
  const std::vector<std::string> settings(task.settings().begin(), task.settings().end());
  LONGHAUL_TRY(check_settings(settings));
  Scenario scenario = LONGHAUL_TRY(
      parse_scenario(task.scenario(), task.scenario_name() + ".toml", settings, catalogue));
  scenario.train.seed = task.seed();
  return make_job(scenario, task.recipe(), task.seed());
}

}  // namespace longhaul
