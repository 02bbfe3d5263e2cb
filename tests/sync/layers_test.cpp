// Recipes by layer: how often each part is averaged, and what that adds up to.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/sync/cluster.h"
#include "tests/sync/random_runs.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kLayers = 12;
constexpr std::size_t kLayerElements = 20;
constexpr std::size_t kElements = kLayers * kLayerElements;

LayerTable even_layers() {
  LayerTable layers;
  for (std::size_t i = 0; i < kLayers; ++i)
    layers.push_back({.name = "layer" + std::to_string(i) + ".weight",
                      .offset = i * kLayerElements,
                      .count = kLayerElements});
  return layers;
}

EngineOptions options_by_layer(std::string_view recipe, OptimizerKind optimizer) {
  EngineOptions options{.recipe = find_recipe(recipe).value(),
                        .optimizer = {.kind = optimizer},
                        .layers = even_layers()};
  options.lr.peak = 0.02;
  options.recipe.planner = PlannerKind::kNone;
  return options;
}

// Every step averages every layer, after its own step: the replicas never part.
TEST(Layers, AveragedInEveryStepAreSynchronousSgd) {
  EngineOptions by_layer = options_by_layer("dreamddp", OptimizerKind::kSgd);
  by_layer.recipe.plan.period_steps = 1;
  QuadraticWorkload workload(even_layers());
  Cluster averaged(by_layer, workload, {1, 2, 0.5});
  Cluster synchronous(options_by_layer("d-sgd", OptimizerKind::kSgd), workload, {1, 2, 0.5});
  for (int step = 0; step < 100; ++step) {
    averaged.step();
    synchronous.step();
  }
  ASSERT_GT(averaged.replicas[0].engine->parts(), 1U);
  for (std::size_t i = 0; i < averaged.replicas.size(); ++i) {
    const std::span<float> position = averaged.replicas[i].learner->parameters();
    const std::span<float> expected = synchronous.replicas[i].learner->parameters();
    for (std::size_t j = 0; j < kElements; ++j)
      ASSERT_NEAR(position[j], expected[j], 1e-5) << "element " << j;
  }
}

// Counts the steps between two rounds of the same part.
class Gaps {
 public:
  // Before a step of the engine.
  void note(const Engine& engine) {
    if (engine.next_round() != engine.steps_done()) return;
    for (const RoundId& round : engine.next_rounds()) {
      longest_ = std::max(longest_, round.step + 1 - last_[round.part]);
      last_[round.part] = round.step + 1;
    }
  }
  [[nodiscard]] std::size_t parts() const { return last_.size(); }
  // The one that goes on after so many steps included.
  [[nodiscard]] std::uint64_t longest(std::uint64_t steps) const {
    std::uint64_t longest = longest_;
    for (const auto& [part, last] : last_) longest = std::max(longest, steps - last);
    return longest;
  }

 private:
  std::map<std::uint32_t, std::uint64_t> last_;  // by part: the step after its last round
  std::uint64_t longest_ = 0;
};

class LayersOf : public ::testing::TestWithParam<std::tuple<std::string, OptimizerKind>> {
 protected:
  static EngineOptions options() {
    return options_by_layer(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

TEST_P(LayersOf, AreAveragedOnceInAPeriodAndCountOnce) {
  constexpr int kPeriod = 5;
  constexpr std::uint64_t kSteps = 60;
  EngineOptions unchanging = options();
  QuadraticWorkload workload(even_layers());
  unchanging.recipe.plan.period_steps = kPeriod;
  Cluster cluster(unchanging, workload, {1, 2, 0.5});
  Gaps gaps;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    gaps.note(*cluster.replicas[0].engine);
    cluster.step();
    ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << "step " << step;
  }
  EXPECT_EQ(gaps.parts(), cluster.replicas[0].engine->parts());
  EXPECT_EQ(gaps.longest(kSteps), kPeriod);
}

// A new schedule begins where the present period ends. So the worst gap is from the first step of
// one period to the last step of the next.
TEST_P(LayersOf, AreAveragedInTwoPeriodsWhateverSchedulesFollowEachOther) {
  constexpr int kMostPeriod = 4;
  constexpr std::uint64_t kSteps = 400;
  std::mt19937_64 random(42);
  QuadraticWorkload workload(even_layers());
  EngineOptions changing = options();
  changing.recipe.plan.period_steps = kMostPeriod;
  Cluster cluster(changing, workload, {1, 2, 0.5});
  const auto parts = static_cast<std::uint32_t>(cluster.replicas[0].engine->parts());
  cluster.replicas[1].returning->returns = [&](RoundId) { return random() % 5 == 0; };
  Gaps gaps;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    if (random() % 4 == 0) {
      Plan plan{.delay_steps = static_cast<int>(random() % 4),
                .period_steps = 1 + static_cast<int>(random() % kMostPeriod),
                .merge = Merge::kLate};
      plan.schedule = random_schedule(plan, parts, random);
      cluster.announce(plan);
    }
    gaps.note(*cluster.replicas[0].engine);
    cluster.step();
    ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << "step " << step;
  }
  EXPECT_EQ(gaps.parts(), parts);
  EXPECT_LE(gaps.longest(kSteps), 2 * kMostPeriod - 1);
  EXPECT_GT(gaps.longest(kSteps), kMostPeriod) << "no schedule followed another";
}

INSTANTIATE_TEST_SUITE_P(
    Sync, LayersOf,
    ::testing::Combine(::testing::Values("dreamddp", "dreamddp-late", "plsgd-enp"),
                       ::testing::Values(OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                         OptimizerKind::kAdamW)),
    [](const auto& one) {
      std::string name = std::get<0>(one.param) + '_' + std::to_string(one.index);
      std::ranges::replace(name, '-', '_');
      return name;
    });

TEST(Layers, NeedARoundOfEachPartInAPeriod) {
  const EngineOptions options = options_by_layer("dreamddp", OptimizerKind::kSgd);
  Plan plan{.period_steps = 2, .merge = Merge::kLate, .schedule = {{}, {}}};
  const auto parts = static_cast<std::uint32_t>(part_times(options).layers.size());
  for (std::uint32_t part = 0; part + 1 < parts; ++part) plan.schedule[part % 2].push_back(part);
  EXPECT_FALSE(check_plan(plan, options).ok());
  plan.schedule[1].push_back(parts - 1);
  EXPECT_TRUE(check_plan(plan, options).ok());
}

}  // namespace
}  // namespace longhaul::testing
