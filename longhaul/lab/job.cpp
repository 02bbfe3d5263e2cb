#include "longhaul/lab/job.h"

#include <optional>
#include <string>

namespace longhaul::lab {

Result<EngineSetup> engine_setup(const Job& job, const LayerTable& layers) {
  const TrainSettings& train = job.scenario.train;
  const Result<OptimizerKind> optimizer = parse_optimizer(train.optimizer);
  if (!optimizer.ok()) return optimizer.error();
  std::optional<std::uint64_t> final_average;
  if (train.final_average == "yes") {
    if (job.recipe.recipe.plan.merge != Merge::kLate || job.recipe.recipe.local.fragments > 1)
      return Error{
          ErrorCode::kInvalidArgument,
          "train.final_average: expected a recipe with merge = late and one fragment, got " +
              std::string(job.recipe.recipe.name)};
    final_average = train.steps - 1;
  }
  return EngineSetup{
      .recipe = job.recipe.recipe,
      .optimizer = {.kind = *optimizer,
                    .momentum = static_cast<float>(train.momentum),
                    .weight_decay = static_cast<float>(train.weight_decay)},
      .lr = {.peak = job.recipe.lr,
             .shape = train.schedule == "cosine" ? LrShape::kCosine : LrShape::kConstant,
             .warmup_steps = train.warmup_steps,
             .steps = train.steps},
      .clip = train.clip,
      .seed = job.seed,
      .layers = layers,
      .final_average = final_average};
}

}  // namespace longhaul::lab
