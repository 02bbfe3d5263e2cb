#include "longhaul/lab/job.h"

namespace longhaul::lab {

Result<EngineSetup> engine_setup(const Job& job, const LayerTable& layers) {
  const TrainSettings& train = job.scenario.train;
  const Result<OptimizerKind> optimizer = parse_optimizer(train.optimizer);
  if (!optimizer.ok()) return optimizer.error();
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
      .layers = layers};
}

}  // namespace longhaul::lab
