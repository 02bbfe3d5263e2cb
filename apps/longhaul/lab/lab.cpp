// longhaul lab: recipes compared on the virtual clock. Training needs libtorch, so after parsing
// longhaul-torch takes over with the same arguments.
#include <iostream>
#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/torch_program.h"
#include "apps/longhaul/lab/lab_options.h"
#include "longhaul/job/scenario_text.h"

namespace longhaul::apps {
namespace {

int print_config(const std::vector<Scenario>& points) {
  if (points.size() > 1)
    return complain("lab", {ErrorCode::kInvalidArgument,
                            "--print-config: expected one seed and no --grid, which make " +
                                std::to_string(points.size()) + " configurations"});
  Scenario scenario = points.front();
  if (!scenario.train.stop) scenario.train.stop = StopAt::kSteps;  // what a lab does
  std::cout << scenario_toml(scenario);
  return kExitDone;
}

// Everything that needs no training is checked before longhaul-torch is looked for.
int run_lab(const LabCommandOptions& arguments, const std::vector<std::string>& words) {
  const Result<lab::StudyOptions> request = study_request(arguments);
  if (!request.ok()) return complain("lab", request.error(), kExitWrongUse);
  const Result<std::vector<Scenario>> points = lab::study_points(*request);
  if (!points.ok()) return complain("lab", points.error(), kExitWrongUse);
  if (arguments.print_config) return print_config(*points);
  return complain("lab", become_torch_program(words), kExitFailed);
}

}  // namespace

void add_lab(CLI::App& program, Run& run, const std::vector<std::string>& words) {
  const auto arguments =
      std::make_shared<LabCommandOptions>();  // shared with the callback, which outlives this call
  CLI::App* lab = add_lab_options(program, *arguments);
  lab->callback([=, &run] { run = [=] { return run_lab(*arguments, words); }; });
}

}  // namespace longhaul::apps
