#include "longhaul/job/job.h"

#include <optional>
#include <string>
#include <vector>

#include "longhaul/job/recipe_choice.h"
#include "longhaul/sync/layer_times.h"
#include "longhaul/sync/optimizer.h"

namespace longhaul {
namespace {

Error bad_recipe(const std::string& text, const std::string& expected) {
  return Error{ErrorCode::kInvalidArgument, "recipe " + text + ": expected " + expected};
}

void put_over(const RecipeOptions& settings, Job& job) {
  Plan& plan = job.recipe.plan;
  LocalSteps& local = job.recipe.local;
  plan.keep_ratio = settings.keep_ratio.value_or(plan.keep_ratio);
  plan.period_steps = settings.period_steps.value_or(plan.period_steps);
  if (settings.delay_steps) local.delay_periods = 0;
  if (local.delay_periods > 0) plan.delay_steps = local.delay_periods * plan.period_steps;
  plan.delay_steps = settings.delay_steps.value_or(plan.delay_steps);
  if (settings.codec) job.recipe.codec = parse_codec(*settings.codec).value();
  if (settings.merge) plan.merge = parse_merge(*settings.merge).value();
  job.lr = settings.lr.value_or(job.lr);
  if (settings.outer_lr) {
    local.outer_lr = static_cast<float>(*settings.outer_lr);
    local.outer_lr_by_replicas = nullptr;
  }
  if (settings.residual_decay)
    job.recipe.residual_decay = static_cast<float>(*settings.residual_decay);
}

// Which keys the recipe's planner decides itself.
Status check_planned(const std::string& text, PlannerKind planner, const RecipeOptions& settings) {
  const auto refuse = [&](const char* key) {
    return Error{ErrorCode::kInvalidArgument,
                 "recipe " + text + ": " + key + " is what it chooses by itself (static takes it)"};
  };
  if (planner == PlannerKind::kNone) return Done{};
  const bool has_schedule = planner == PlannerKind::kLayers;  // that is all it chooses
  if (settings.keep_ratio && !has_schedule) return refuse("keep_ratio");
  if (settings.delay_steps && planner != PlannerKind::kAccordion) return refuse("delay_steps");
  const bool keeps_merge =
      planner == PlannerKind::kDeco || planner == PlannerKind::kAccordion || has_schedule;
  if (settings.merge && !keeps_merge) return refuse("merge");
  if (settings.period_steps.value_or(1) > 1 && !has_schedule) {
    return Error{
        ErrorCode::kInvalidArgument,
        "recipe " + text + ": period_steps: a recipe with a planner takes none (static does)"};
  }
  return Done{};
}

// Whether the settings mean something to the recipe that they have made.
Status check_put_over(const RecipeOptions& settings, const Job& job) {
  const Recipe& recipe = job.recipe;
  if (settings.outer_lr && recipe.plan.merge != Merge::kOuter)
    return bad_recipe(job.recipe_text, "outer_lr with merge = outer only, got merge = " +
                                           std::string(name_of(recipe.plan.merge)));
  if (settings.keep_ratio.value_or(1) < 1 && !drops_elements(recipe.codec.kind))
    return bad_recipe(job.recipe_text,
                      "keep_ratio with a codec that leaves elements out (top_k/bf16), got " +
                          recipe.codec.name() + ", which has no ratio");
  return Done{};
}

constexpr int kMostAnchors = 8;

Status check_together(const std::string& text, const Recipe& recipe, const TrainOptions& train) {
  const Plan& plan = recipe.plan;
  const LocalSteps& local = recipe.local;
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument, "recipe " + text + ": " + why};
  };
  const bool keeps_residual = recipe.keeps_residual && plan.merge != Merge::kAnchor;
  if (recipe.codec.kind == CodecKind::kThreshold && recipe.planner != PlannerKind::kNone)
    return refuse("codec: threshold sends what is large enough, however much a plan allows");
  if (recipe.residual_decay < 1 && !keeps_residual)
    return refuse("residual_decay: it keeps no residual");
  if (bits_of(recipe.codec.values) <= 2 && !keeps_residual)
    return refuse("codec: values of 1 or 2 bits need a residual, and it keeps none");
  if (plan.merge == Merge::kAhead && !can_be_foreseen(train.optimizer))
    return refuse("merge = ahead foresees steps of sgd, momentum or nesterov, not of adamw");
  const Status within_limits = check_plan_limits(plan);
  if (!within_limits.ok()) return refuse(within_limits.error().message);
  if (plan.period_steps > 1 && static_cast<std::size_t>(plan.period_steps) > train.steps) {
    return refuse("period_steps " + std::to_string(plan.period_steps) +
                  " is longer than the run, train.steps = " + std::to_string(train.steps) +
                  ": no round would close; set fewer, or train longer");
  }
  if (static_cast<std::size_t>(plan.delay_steps) >= train.steps)
    return refuse("delay_steps " + std::to_string(plan.delay_steps) +
                  " is as long as the run, train.steps = " + std::to_string(train.steps) +
                  ": no mean would be merged in it");
  if (plan.merge == Merge::kAnchor && plan.delay_steps > kMostAnchors * plan.period_steps)
    return refuse("merge = anchor keeps an anchor for each period of delay, at most " +
                  std::to_string(kMostAnchors));
  if (recipe.is_two_way && (local.fragments > 1 || recipe.planner != PlannerKind::kNone))
    return refuse("a compressed mean is of the whole model, and its plan fixed");
  if (recipe.is_two_way && plan.merge == Merge::kAnchor)
    return refuse("merge = anchor tells all again in every round: a mean may hold nothing back");
  if (local.fragments > 1 && plan.merge != Merge::kLate && plan.merge != Merge::kOuter)
    return refuse("a model in fragments needs merge = late or outer");
  if (recipe.is_by_layer && plan.merge != Merge::kLate && plan.merge != Merge::kOptimizer)
    return refuse("layers that travel on their own need merge = late or optimizer");
  return Done{};
}

}  // namespace

Result<Job> make_job(const Scenario& scenario, const std::string& recipe, std::uint64_t seed) {
  const RecipeOptions own = LONGHAUL_TRY(recipe_settings(recipe));
  const std::string name = recipe_name(recipe);
  const Recipe row = LONGHAUL_TRY(find_recipe(name));
  Job job{.scenario = scenario,
          .recipe_text = recipe,
          .recipe = row,
          .lr = scenario.train.lr,
          .seed = seed};
  std::vector<RecipeOptions> layers;
  const auto of_scenario = scenario.overrides.find(name);
  if (of_scenario != scenario.overrides.end()) layers.push_back(of_scenario->second);
  layers.push_back(own);
  for (const RecipeOptions& settings : layers) {
    LONGHAUL_TRY(check_planned(recipe, row.planner, settings));
    put_over(settings, job);
    LONGHAUL_TRY(check_put_over(settings, job));
  }
  LocalSteps& local = job.recipe.local;
  if (local.outer_lr_by_replicas != nullptr)
    local.outer_lr = local.outer_lr_by_replicas(scenario.replicas.size());
  LONGHAUL_TRY(check_together(recipe, job.recipe, scenario.train));
  return job;
}

Result<EngineOptions> engine_options(const Job& job, const LayerTable& layers) {
  const TrainOptions& train = job.scenario.train;
  std::optional<std::uint64_t> final_average;
  if (train.final_average) {
    const Recipe& recipe = job.recipe;
    const bool stays_late =
        recipe.plan.merge == Merge::kLate &&
        (recipe.planner == PlannerKind::kNone || recipe.planner == PlannerKind::kDeco);
    if (!stays_late || recipe.local.fragments > 1 || recipe.is_by_layer)
      return Error{ErrorCode::kInvalidArgument,
                   "train.final_average: expected a recipe that always merges late, in one piece, "
                   "got " +
                       std::string(recipe.name)};
    final_average = train.steps - 1;
  }
  const bool has_parts = job.recipe.is_by_layer || job.recipe.may_go_by_layer;
  if (has_parts && !layers.empty()) (void)LONGHAUL_TRY(layer_times(layers, job.scenario.times));
  return EngineOptions{.recipe = job.recipe,
                       .optimizer = {.kind = train.optimizer,
                                     .momentum = static_cast<float>(train.momentum),
                                     .weight_decay = static_cast<float>(train.weight_decay)},
                       .lr = {.peak = job.lr,
                              .shape = train.schedule,
                              .warmup_steps = train.warmup_steps,
                              .steps = train.steps},
                       .clip = train.clip,
                       .seed = job.seed,
                       .layers = layers,
                       .times = job.scenario.times,
                       .final_average = final_average,
                       .replicas = job.scenario.replicas.size()};
}

}  // namespace longhaul
