#include "apps/longhaul_torch/job_workload.h"

#include "trainer/workload.h"

namespace longhaul::apps {
namespace {

// Sizes that the scenario leaves at 0 are the model's own.
trainer::ModelKnobs model_options(const ModelOptions& model) {
  trainer::ModelKnobs options;
  const auto put = [&options](const char* name, std::size_t value) {
    if (value > 0) options[name] = static_cast<double>(value);
  };
  put(model.name == "resnet" ? "blocks" : "layers", model.layers);
  put("width", model.width);
  put("heads", model.heads);
  put("context", model.context);
  return options;
}

}  // namespace

Result<std::unique_ptr<Workload>> workload_of(const Scenario& scenario, std::uint64_t seed,
                                              const ThreadCounts& threads) {
  const trainer::SplitKind split = LONGHAUL_TRY(trainer::parse_split(scenario.data.split));
  return trainer::make_workload(
      {.model = {.name = scenario.model.name, .options = model_options(scenario.model)},
       .data = {.kind = scenario.data.kind, .path = scenario.data.path},
       .split = {.kind = split, .beta = scenario.data.dirichlet},
       .replicas = scenario.replicas.size(),
       .batch = scenario.train.batch,
       .seed = seed,
       .threads = threads.evaluation,
       .gradient_threads = threads.gradient});
}

}  // namespace longhaul::apps
