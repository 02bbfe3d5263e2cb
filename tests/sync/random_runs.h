// Runs that are the same whenever they have the same seed: setups, plans that change, idle steps.
#pragma once

#include <random>

#include "tests/sync/cluster.h"

namespace longhaul::testing {

inline constexpr std::size_t kRunElements = 257;

inline bool can_change_rule(Merge merge) { return merge == Merge::kLate || merge == Merge::kAhead; }

// With periods of at most five steps: short runs have many rounds.
inline Recipe with_short_periods(Recipe recipe) {
  Plan& plan = recipe.plan;
  plan.period_steps = std::min(plan.period_steps, 5);
  if (recipe.local.delay_periods > 0)
    plan.delay_steps = recipe.local.delay_periods * plan.period_steps;
  return recipe;
}

// A recipe with an optimizer by lot, and a table with a matrix, for the codecs that look at it.
inline EngineSetup random_run_setup(const Recipe& recipe, std::mt19937_64& random) {
  constexpr std::array kKinds{OptimizerKind::kMomentum, OptimizerKind::kNesterov,
                              OptimizerKind::kSgd, OptimizerKind::kAdamW};
  EngineSetup setup;
  setup.recipe = with_short_periods(recipe);
  setup.optimizer.kind = kKinds[random() % (can_change_rule(recipe.plan.merge) ? 3 : 4)];
  setup.optimizer.weight_decay = 0.01F;
  setup.lr = {.peak = 0.02, .shape = LrShape::kCosine, .warmup_steps = 3, .steps = 40};
  setup.layers = {{.name = "matrix", .offset = 0, .count = 240, .shape = {16, 15}},
                  {.name = "rest", .offset = 240, .count = 17}};
  return setup;
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

// What happens to a cluster from outside, step by step: equal for clusters with equal seeds.
class Script {
 public:
  Script(const Recipe& recipe, std::uint64_t seed) : recipe_(recipe), random_(seed) {}

  void submit_all(Cluster& cluster) {
    if (random_() % 4 == 0) {
      Plan plan = random_plan(recipe_.plan.merge, random_);
      if (recipe_.local.fragments > 1) plan.period_steps = recipe_.plan.period_steps;
      cluster.announce(plan);
    }
    cluster.submit_all([this](std::size_t) { return random_() % 8 == 0; });
  }
  void step(Cluster& cluster) {
    submit_all(cluster);
    cluster.merge_all();
  }

 private:
  Recipe recipe_;
  std::mt19937_64 random_;
};

// All recipes, and one whose codec has a memory of its own.
inline std::vector<Recipe> all_kinds_of_recipes() {
  std::vector<Recipe> recipes(all_recipes().begin(), all_recipes().end());
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
