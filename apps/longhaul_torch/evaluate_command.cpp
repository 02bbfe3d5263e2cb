#include "apps/longhaul_torch/evaluate_command.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/model_file.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/closing.h"
#include "trainer/workload.h"

namespace longhaul::apps {
namespace {

constexpr std::uint64_t kAnySeed = 1;  // of initial parameters and the split, which are not used

}  // namespace

int run_evaluate(const EvaluateCommandOptions& arguments) {
  const Result<Scenario> scenario = scenario_to_evaluate(arguments);
  if (!scenario.ok()) return complain("evaluate", scenario.error(), kExitWrongUse);
  trainer::WorkloadOptions options = trainer::workload_options(*scenario, kAnySeed);
  options.threads = all_cores();
  const Result<std::unique_ptr<Workload>> workload = trainer::make_workload(options);
  if (!workload.ok()) return complain("evaluate", workload.error(), kExitFailed);
  const Result<std::vector<float>> parameters = read_model(arguments.model, (*workload)->layers());
  if (!parameters.ok()) return complain("evaluate", parameters.error(), kExitFailed);
  const Evaluation score =
      (*workload)->evaluate(*parameters, std::numeric_limits<std::size_t>::max());
  const std::string digest = digest_text(*parameters);
  if (arguments.json) {
    const nlohmann::ordered_json json{{"loss", score.loss},  // null, if it is not finite
                                      {"accuracy", score.accuracy},
                                      {"samples", score.samples},
                                      {"digest", digest}};
    std::cout << json.dump(2) << '\n';
    return kExitDone;
  }
  std::cout << two_columns(
      {{"model", arguments.model}, {"score", evaluation_text(score)}, {"digest", digest}});
  return kExitDone;
}

}  // namespace longhaul::apps
