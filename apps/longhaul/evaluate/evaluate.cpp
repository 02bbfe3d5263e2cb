// longhaul evaluate: scores a model. That needs libtorch, so after parsing longhaul-torch takes
// over.
#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/torch_program.h"
#include "apps/longhaul/evaluate/evaluate_options.h"

namespace longhaul::apps {

void add_evaluate(CLI::App& program, Run& run, const std::vector<std::string>& words) {
  const auto arguments = std::make_shared<EvaluateCommandOptions>();  // shared with the callback
  CLI::App* evaluate = add_evaluate_options(program, *arguments);
  evaluate->callback([=, &run] {
    run = [=] {
      const Result<Scenario> scenario = scenario_to_evaluate(*arguments);
      if (!scenario.ok()) return complain("evaluate", scenario.error(), kExitWrongUse);
      return complain("evaluate", become_torch_program(words), kExitFailed);
    };
  });
}

}  // namespace longhaul::apps
