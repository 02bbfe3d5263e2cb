// Which plans fit an engine.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/sync/engine.h"

namespace longhaul {
namespace {

Error misfit(std::string what) { return {ErrorCode::kMismatch, std::move(what)}; }

bool is_late_or_ahead(Merge merge) { return merge == Merge::kLate || merge == Merge::kAhead; }

// Does that recipe average in each step those layers whose way the backward pass hides?
bool is_hidden_by_backward(const Recipe& recipe) {
  return recipe.is_by_layer &&
         (recipe.layers == LayerPolicy::kScheduled || recipe.layers == LayerPolicy::kContiguous ||
          recipe.layers == LayerPolicy::kEqualNumber);
}

// With the caller's own local step, nothing travels before that step is made.
Status check_callers_step(const Plan& plan, const Recipe& recipe) {
  if (plan.merge == Merge::kAhead || plan.merge == Merge::kOwnStep)
    return misfit("merge rule " + std::string(name_of(plan.merge)) +
                  " needs Longhaul's own optimizer");
  if (is_hidden_by_backward(recipe))
    return misfit("recipe " + std::string(recipe.name) +
                  ": with the caller's own optimizer layers travel after its step, so the "
                  "backward pass hides none of them (dreamddp-late merges them late)");
  return Done{};
}

// An average in place holds nothing back, and nobody can compute with its values meanwhile.
Status check_in_place(const Plan& plan, const EngineOptions& options) {
  const Recipe& recipe = options.recipe;
  const bool is_exact =
      recipe.codec.kind == CodecKind::kDense && recipe.codec.values == ValueFormat::kFp32;
  if (!is_exact) return misfit("an all-reduce sums dense/fp32, not " + recipe.codec.name());
  if (recipe.is_two_way) return misfit("an all-reduce sums means that nobody compresses");
  const bool is_late =
      recipe.layers == LayerPolicy::kScheduledLate ||
      (recipe.planner != PlannerKind::kNone && recipe.planner != PlannerKind::kLayers);
  if (plan.delay_steps > 0 || is_late)
    return misfit(
        "an all-reduce leaves the mean in place of the values, and training would go "
        "on without them: it takes no delay");
  if (plan.merge != Merge::kLate && plan.merge != Merge::kOptimizer)
    return misfit("an all-reduce needs merge rule late or optimizer, not " +
                  std::string(name_of(plan.merge)));
  if (options.local_step == LocalStep::kCallers)
    return misfit("an all-reduce needs Longhaul's own optimizer");
  return Done{};
}

Status check_parts(const Plan& plan, const EngineOptions& options) {
  const bool is_by_layer = options.recipe.is_by_layer_with(plan);
  const std::size_t by_layer = is_by_layer ? part_times(options).layers.size() : 0;
  const std::size_t parts =
      by_layer > 0 ? by_layer : static_cast<std::size_t>(options.recipe.local.fragments);
  const bool merges_parts =
      plan.merge == Merge::kLate || plan.merge == Merge::kOuter || plan.merge == Merge::kOptimizer;
  if (parts > 1 && !merges_parts)
    return misfit("merge rule " + std::string(name_of(plan.merge)) +
                  " merges a model in one part, and it has " + std::to_string(parts));
  if (plan.schedule.empty()) return Done{};
  if (parts == 1 && is_by_layer && options.layers.empty()) return Done{};  // yet
  if (parts == 1) return misfit("schedule: the model is one part");
  std::vector<bool> is_scheduled(parts);
  for (const auto& step : plan.schedule) {
    if (!step.empty() && step.back() >= parts)
      return misfit("schedule: part " + std::to_string(step.back()) + " of a model in " +
                    std::to_string(parts) + " parts");
    for (const std::uint32_t part : step) is_scheduled[part] = true;
  }
  const auto missing = std::ranges::find(is_scheduled, false);
  if (missing == is_scheduled.end()) return Done{};
  return misfit("schedule: no round of part " +
                std::to_string(std::distance(is_scheduled.begin(), missing)));
}

}  // namespace

Status check_plan(const Plan& plan, const EngineOptions& options) {
  LONGHAUL_TRY(check_plan_limits(plan, options.replicas));
  LONGHAUL_TRY(check_parts(plan, options));
  const Merge own = options.recipe.plan.merge;
  const bool can_change = is_late_or_ahead(plan.merge) && is_late_or_ahead(own);
  if (plan.merge != own && !can_change) {
    return misfit("merge rule " + std::string(name_of(plan.merge)) + ", expected " +
                  std::string(name_of(own)));
  }
  if (options.local_step == LocalStep::kCallers)
    LONGHAUL_TRY(check_callers_step(plan, options.recipe));
  if (options.averages_in_place) LONGHAUL_TRY(check_in_place(plan, options));
  if (plan.merge == Merge::kAhead && !can_be_foreseen(options.optimizer.kind))
    return misfit("look-ahead with AdamW");
  if (plan.merge == Merge::kAhead && options.final_average)
    return misfit("look-ahead in a run that averages at the end");
  return Done{};
}

}  // namespace longhaul
