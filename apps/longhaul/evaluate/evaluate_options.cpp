#include "apps/longhaul/evaluate/evaluate_options.h"

#include <utility>

#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/command/list_option.h"
#include "longhaul/job/task.h"
#include "longhaul/lab/study.h"

namespace longhaul::apps {

CLI::App* add_evaluate_options(CLI::App& program, EvaluateCommandOptions& arguments) {
  CLI::App* evaluate =
      program.add_subcommand("evaluate", "Score a model on all held-out data of a scenario");
  evaluate
      ->add_option("model", arguments.model,
                   "File that `longhaul export` or `longhaul train --save` has written, or any "
                   "safetensors file with the same names and shapes")
      ->required();
  evaluate
      ->add_option("scenario", arguments.scenario,
                   "Name of a built-in scenario, or a file that ends in .toml")
      ->required();
  add_settings(*evaluate, arguments.settings,
               "table.key=value, as if it stood in the scenario; repeatable");
  evaluate->add_option("--data", arguments.data, "Where the data lies, in place of the scenario's");
  evaluate->add_flag("--json", arguments.json, "One JSON object in place of the text");
  evaluate->footer(
      "Loss and accuracy are means over all held-out samples, as in the closing table of a run.\n\n"
      "Examples:\n"
      "  longhaul export run1 --out model.safetensors\n"
      "  longhaul evaluate model.safetensors fashion-wan");
  return evaluate;
}

Result<Scenario> scenario_to_evaluate(const EvaluateCommandOptions& arguments) {
  Result<Scenario> scenario =
      scenario_of({.scenario = arguments.scenario, .settings = arguments.settings}, catalogue());
  if (scenario.ok() && !arguments.data.empty()) scenario->data.path = arguments.data;
  return scenario;
}

}  // namespace longhaul::apps
