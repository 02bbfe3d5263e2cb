#include "longhaul/job/job.h"

#include <optional>
#include <string>

namespace longhaul {

Result<EngineOptions> engine_options(const Job& job, const LayerTable& layers) {
  const TrainOptions& train = job.scenario.train;
  std::optional<std::uint64_t> final_average;
  if (train.final_average) {
    const Recipe& recipe = job.recipe.recipe;
    const bool stays_late =
        recipe.plan.merge == Merge::kLate &&
        (recipe.planner == PlannerKind::kNone || recipe.planner == PlannerKind::kDeco);
    if (!stays_late || recipe.local.fragments > 1)
      return Error{ErrorCode::kInvalidArgument,
                   "train.final_average: expected a recipe that always merges late, in one piece, "
                   "got " +
                       std::string(recipe.name)};
    final_average = train.steps - 1;
  }
  return EngineOptions{.recipe = job.recipe.recipe,
                       .optimizer = {.kind = train.optimizer,
                                     .momentum = static_cast<float>(train.momentum),
                                     .weight_decay = static_cast<float>(train.weight_decay)},
                       .lr = {.peak = job.recipe.lr,
                              .shape = train.schedule,
                              .warmup_steps = train.warmup_steps,
                              .steps = train.steps},
                       .clip = train.clip,
                       .seed = job.seed,
                       .layers = layers,
                       .final_average = final_average,
                       .replicas = job.scenario.replicas.size()};
}

}  // namespace longhaul
