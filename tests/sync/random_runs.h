// Runs that are the same whenever they have the same seed: setups, plans that change, idle steps.
#pragma once

#include <random>
#include <set>

#include "tests/sync/cluster.h"
#include "tests/sync/uneven_recipe.h"

namespace longhaul::testing {

inline constexpr std::size_t kRunElements = 257;

// With a matrix, for the codecs that look at it.
inline LayerTable run_layers() {
  return {{.name = "matrix", .offset = 0, .count = 240, .shape = {16, 15}},
          {.name = "rest", .offset = 240, .count = 17}};
}

inline bool can_change_rule(Merge merge) { return merge == Merge::kLate || merge == Merge::kAhead; }

// With periods of at most five steps: short runs have many rounds.
inline Recipe with_short_periods(Recipe recipe) {
  Plan& plan = recipe.plan;
  plan.period_steps = std::min(plan.period_steps, 5);
  if (recipe.local.delay_periods > 0)
    plan.delay_steps = recipe.local.delay_periods * plan.period_steps;
  return recipe;
}

// A recipe with an optimizer by lot.
inline EngineOptions random_run_options(const Recipe& recipe, std::mt19937_64& random) {
  constexpr std::array kKinds{OptimizerKind::kMomentum, OptimizerKind::kNesterov,
                              OptimizerKind::kSgd, OptimizerKind::kAdamW};
  EngineOptions options;
  options.recipe = with_short_periods(recipe);
  options.optimizer.kind = kKinds[random() % (can_change_rule(recipe.plan.merge) ? 3 : 4)];
  options.optimizer.weight_decay = 0.01F;
  options.lr = {.peak = 0.02, .shape = LrShape::kCosine, .warmup_steps = 3, .steps = 40};
  options.layers = run_layers();
  return options;
}

// Where a planner might take that rule.
inline Plan random_plan(Merge merge, std::mt19937_64& random) {
  Plan plan{.keep_ratio = 0.02 + 0.1 * static_cast<double>(random() % 5),
            .delay_steps = static_cast<int>(random() % 6),
            .merge = merge};
  if (can_change_rule(merge)) plan.merge = random() % 2 == 0 ? Merge::kLate : Merge::kAhead;
  if (has_local_steps(plan.merge)) plan.period_steps = 1 + static_cast<int>(random() % 4);
  return plan;
}

// Even, or each part once at least and others by lot.
inline std::vector<std::vector<std::uint32_t>> random_schedule(const Plan& plan,
                                                               std::uint32_t parts,
                                                               std::mt19937_64& random) {
  if (random() % 3 == 0) return {};
  std::vector<std::set<std::uint32_t>> steps(static_cast<std::size_t>(plan.period_steps));
  steps.back().insert(static_cast<std::uint32_t>(random() % parts));
  for (std::uint32_t part = 0; part < parts; ++part) {
    for (std::uint64_t i = 0; i <= random() % 2; ++i) steps[random() % steps.size()].insert(part);
  }
  std::vector<std::vector<std::uint32_t>> schedule;
  for (const auto& step : steps) schedule.emplace_back(step.begin(), step.end());
  return schedule;
}

// What happens to a cluster from outside, step by step: equal for clusters with equal seeds.
class Script {
 public:
  Script(const Recipe& recipe, std::uint64_t seed) : recipe_(recipe), random_(seed) {}

  void submit_all(Cluster& cluster) {
    if (random_() % 4 == 0) {
      Plan plan = random_plan(recipe_.plan.merge, random_);
      const std::size_t parts = cluster.replicas[0].engine->parts();
      if (parts > 1) {
        plan.merge = recipe_.plan.merge;  // not all rules have parts
        plan.period_steps = has_local_steps(plan.merge) ? 1 + static_cast<int>(random_() % 4) : 1;
        plan.schedule = random_schedule(plan, static_cast<std::uint32_t>(parts), random_);
      }
      if (recipe_.may_go_by_layer) go_by_layer_or_not(plan);
      cluster.announce(plan);
    }
    cluster.submit_all([this](std::size_t) { return random_() % 8 == 0; });
  }
  void step(Cluster& cluster) {
    submit_all(cluster);
    cluster.merge_all();
  }

 private:
  void go_by_layer_or_not(Plan& plan) {
    plan.schedule.clear();
    if (random_() % 2 == 0) return;
    const auto parts = part_times({.recipe = recipe_, .layers = run_layers()}).layers.size();
    plan.merge = Merge::kLate;
    plan.schedule = random_schedule(plan, static_cast<std::uint32_t>(parts), random_);
  }

  Recipe recipe_;
  std::mt19937_64 random_;
};

// All recipes, one whose codec has a memory of its own, and one with a schedule that is not even:
// a part twice in a period, and two parts in one step.
inline std::vector<Recipe> all_kinds_of_recipes() {
  std::vector<Recipe> recipes(all_recipes().begin(), all_recipes().end());
  recipes.push_back(uneven_recipe());
  recipes.push_back({.name = "low-rank-late",
                     .codec = {.kind = CodecKind::kLowRank, .rank = 2},
                     .plan = {.delay_steps = 2, .merge = Merge::kLate}});
  return recipes;
}

inline std::string test_name_of(const Recipe& recipe) {
  std::string name(recipe.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace longhaul::testing
