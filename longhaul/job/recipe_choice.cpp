#include "longhaul/job/recipe_choice.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "longhaul/base/text.h"
#include "longhaul/job/scenario_keys.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {
namespace {

Error bad(const std::string& text, const std::string& expected) {
  return Error{ErrorCode::kInvalidArgument, "recipe " + text + ": expected " + expected};
}

std::vector<ScenarioKey> recipe_keys() {
  std::vector<ScenarioKey> keys = scenario_keys({});
  std::erase_if(keys, [](const ScenarioKey& key) { return key.table != "recipe"; });
  return keys;
}

// The keys of [recipe.NAME], written behind colons.
Status apply(const std::string& whole, const std::string& name, const std::string& value,
             RecipeOptions& settings) {
  const std::vector<ScenarioKey> keys = recipe_keys();
  const auto key = std::ranges::find(keys, name, &ScenarioKey::name);
  if (key == keys.end()) {
    std::vector<std::string> names;
    names.reserve(keys.size());
    for (const ScenarioKey& known : keys) names.push_back(known.name);
    return bad(whole,
               "one of " + joined(names) + ", got \"" + name + '"' + did_you_mean(name, names));
  }
  Draft draft;
  draft.recipe = settings;
  if (!key->set(draft, {.text = value}))
    return bad(whole, name + " as " + key->expected + ", got \"" + value + '"');
  settings = draft.recipe;
  return Done{};
}

void put_over(const RecipeOptions& settings, ChosenRecipe& chosen) {
  Plan& plan = chosen.recipe.plan;
  LocalSteps& local = chosen.recipe.local;
  plan.keep_ratio = settings.keep_ratio.value_or(plan.keep_ratio);
  plan.period_steps = settings.period_steps.value_or(plan.period_steps);
  if (settings.delay_steps) local.delay_periods = 0;
  if (local.delay_periods > 0) plan.delay_steps = local.delay_periods * plan.period_steps;
  plan.delay_steps = settings.delay_steps.value_or(plan.delay_steps);
  if (settings.codec) chosen.recipe.codec = parse_codec(*settings.codec).value();
  if (settings.merge) plan.merge = parse_merge(*settings.merge).value();
  chosen.lr = settings.lr.value_or(chosen.lr);
  if (settings.outer_lr) {
    local.outer_lr = static_cast<float>(*settings.outer_lr);
    local.outer_lr_by_replicas = nullptr;
  }
  if (settings.residual_decay)
    chosen.recipe.residual_decay = static_cast<float>(*settings.residual_decay);
}

// Which keys the recipe's planner decides itself.
Status check_planned(const std::string& text, PlannerKind planner, const RecipeOptions& settings) {
  const auto refuse = [&](const char* key) {
    return Error{ErrorCode::kInvalidArgument,
                 "recipe " + text + ": " + key + " is what it chooses by itself (static takes it)"};
  };
  if (planner == PlannerKind::kNone) return Done{};
  if (settings.keep_ratio) return refuse("keep_ratio");
  if (settings.delay_steps && planner != PlannerKind::kAccordion) return refuse("delay_steps");
  const bool keeps_merge = planner == PlannerKind::kDeco || planner == PlannerKind::kAccordion;
  if (settings.merge && !keeps_merge) return refuse("merge");
  if (settings.period_steps.value_or(1) > 1) {
    return Error{
        ErrorCode::kInvalidArgument,
        "recipe " + text + ": period_steps: a recipe with a planner takes none (static does)"};
  }
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
  return Done{};
}

}  // namespace

Result<ChosenRecipe> chosen_recipe(const Scenario& scenario, const RecipeChoice& choice) {
  const Recipe row = LONGHAUL_TRY(find_recipe(choice.name));
  ChosenRecipe chosen{.recipe = row, .lr = scenario.train.lr};
  std::vector<RecipeOptions> layers;
  const auto own = scenario.overrides.find(choice.name);
  if (own != scenario.overrides.end()) layers.push_back(own->second);
  layers.push_back(choice.settings);
  for (const RecipeOptions& settings : layers) {
    LONGHAUL_TRY(check_planned(choice.text, row.planner, settings));
    put_over(settings, chosen);
    if (settings.outer_lr && chosen.recipe.plan.merge != Merge::kOuter)
      return bad(choice.text, "outer_lr with merge = outer only, got merge = " +
                                  std::string(name_of(chosen.recipe.plan.merge)));
    if (settings.keep_ratio.value_or(1) < 1 && !drops_elements(chosen.recipe.codec.kind))
      return bad(choice.text,
                 "keep_ratio with a codec that leaves elements out (top_k/bf16), got " +
                     chosen.recipe.codec.name() + ", which has no ratio");
  }
  LocalSteps& local = chosen.recipe.local;
  if (local.outer_lr_by_replicas != nullptr)
    local.outer_lr = local.outer_lr_by_replicas(scenario.replicas.size());
  LONGHAUL_TRY(check_together(choice.text, chosen.recipe, scenario.train));
  return chosen;
}

Result<RecipeChoice> parse_recipe_choice(const std::string& text) {
  RecipeChoice choice{.text = text};
  std::istringstream parts(text);
  std::getline(parts, choice.name, ':');
  (void)LONGHAUL_TRY(find_recipe(choice.name));
  std::set<std::string> keys;
  for (std::string part; std::getline(parts, part, ':');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return bad(text, "key=value after each colon");
    const std::string key = part.substr(0, equals);
    if (!keys.insert(key).second) return bad(text, "each key once, got " + key + " twice");
    LONGHAUL_TRY(apply(text, key, part.substr(equals + 1), choice.settings));
  }
  return choice;
}

}  // namespace longhaul
