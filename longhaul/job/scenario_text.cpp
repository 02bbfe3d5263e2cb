#include "longhaul/job/scenario_text.h"

#include <filesystem>

#include "longhaul/job/job.h"
#include "longhaul/job/scenario_keys.h"

namespace longhaul {
namespace {

void make_absolute(std::string& path) {
  if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal().string();
}

// The lines of one table, without its head.
std::string table_lines(const std::vector<ScenarioKey>& keys, const std::string& table,
                        Draft& draft) {
  std::string lines;
  for (const ScenarioKey& key : keys) {
    const std::string value = key.table == table ? key.show(draft) : "";
    if (!value.empty()) lines += key.name + " = " + value + '\n';
  }
  return lines;
}

// "# static: codec top_k/bf16, keep ratio 0.05, delay 3, period 1, merge late, lr 0.02".
std::string recipe_comment(const Scenario& scenario, const std::string& text) {
  const Result<Job> job = make_job(scenario, text, scenario.train.seed);
  if (!job.ok()) return "";
  const Recipe& recipe = job->recipe;
  std::string line = "# " + text + ": codec " + recipe.codec.name();
  if (recipe.planner == PlannerKind::kNone)
    line += ", " + plan_text(recipe.plan);
  else
    line += ", its planner chooses the rest";
  return line + formatted(", lr %g", job->lr) + '\n';
}

// [[replica]] tables; equal neighbours share one.
std::string replica_tables(const std::vector<ScenarioKey>& keys,
                           const std::vector<ReplicaOptions>& replicas) {
  std::string text;
  for (std::size_t first = 0; first < replicas.size();) {
    Draft draft;
    draft.replica = replicas[first];
    const std::string lines = table_lines(keys, "replica", draft);
    std::size_t end = first + 1;
    for (; end < replicas.size(); ++end) {
      draft.replica = replicas[end];
      if (table_lines(keys, "replica", draft) != lines) break;
    }
    draft.replica = replicas[first];
    draft.replica_count = end - first;
    text += "\n[[replica]]\n" + table_lines(keys, "replica", draft);
    first = end;
  }
  return text;
}

}  // namespace

std::string scenario_toml(const Scenario& scenario) {
  const std::vector<ScenarioKey> keys = scenario_keys({});
  Draft draft;
  draft.scenario = scenario;
  make_absolute(draft.scenario.data.path);
  for (ReplicaOptions& replica : draft.scenario.replicas) make_absolute(replica.link.trace);
  std::string text;
  std::string table = "none yet";
  for (const ScenarioKey& key : keys) {
    const bool is_done = key.table == table || key.table == "link" || key.table == "replica" ||
                         key.table == "layer" || key.table == "recipe";  // [link]: in [[replica]]
    if (is_done) continue;
    table = key.table;
    if (!table.empty()) text += "\n[" + table + "]\n";
    text += table_lines(keys, table, draft);
    if (!table.empty()) continue;
    for (const std::string& recipe : scenario.recipes) text += recipe_comment(scenario, recipe);
  }
  text += replica_tables(keys, draft.scenario.replicas);
  for (const LayerProfile::Layer& layer : scenario.times.layers) {
    draft.layer = layer;
    text += "\n[[layer]]\n" + table_lines(keys, "layer", draft);
  }
  for (const auto& [name, settings] : scenario.overrides) {
    draft.recipe = settings;
    text += "\n[recipe." + name + "]\n" + table_lines(keys, "recipe", draft);
  }
  return text;
}

}  // namespace longhaul
