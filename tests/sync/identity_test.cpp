// The shared model is the same on all replicas, bit for bit, after every merge, whatever the
// recipe.
#include <gtest/gtest.h>

#include "longhaul/codec/digest.h"
#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

class EveryRecipe : public ::testing::TestWithParam<Recipe> {};

TEST_P(EveryRecipe, KeepsTheSharedModelBitIdentical) {
  EngineOptions options;
  options.recipe = GetParam();
  options.lr = {.peak = 0.02, .shape = LrShape::kCosine, .warmup_steps = 3, .steps = 20};
  QuadraticWorkload workload(1001);
  options.layers = workload.layers();
  Cluster cluster(options, workload, {1, 2, 0.5});
  const Plan& plan = options.recipe.plan;
  const int steps = std::max(20, 3 * (plan.period_steps + plan.delay_steps));
  for (int step = 0; step < steps; ++step) {
    cluster.step();
    for (const ClusterReplica& replica : cluster.replicas) {
      ASSERT_EQ(digest_of(replica.engine->shared()),
                digest_of(cluster.replicas[0].engine->shared()))
          << "step " << step;
    }
  }
  EXPECT_GE(cluster.replicas[0].exchange->rounds_merged(), 2U);
  for (const ClusterReplica& replica : cluster.replicas) {
    ASSERT_TRUE(replica.engine->drain().ok());
    ASSERT_EQ(digest_of(replica.engine->shared()), digest_of(cluster.replicas[0].engine->shared()));
    EXPECT_EQ(replica.engine->rounds_in_flight(), 0U);
  }
}

TEST_P(EveryRecipe, LearnsAQuadratic) {
  EngineOptions options;
  options.recipe = GetParam();
  options.optimizer.kind = OptimizerKind::kSgd;
  options.recipe.plan.period_steps = std::min(options.recipe.plan.period_steps, 8);
  // A residual that decays leaks, and what it holds for many rounds must not be worth more than the
  // way that is left.
  const bool decays = options.recipe.residual_decay < 1;
  const int slower = decays ? 10 : 1;
  const int steps = (decays ? 240 : 120) * slower;
  options.lr.peak = 0.02 / slower;
  QuadraticWorkload workload(1001, 3, 0.1F);
  Cluster cluster(options, workload, {1, 1, 1});
  const double before = workload.evaluate(cluster.replicas[0].engine->shared(), 1).loss;
  for (int step = 0; step < steps; ++step) cluster.step();
  EXPECT_LT(workload.evaluate(cluster.replicas[0].engine->shared(), 1).loss, 0.2 * before);
}

INSTANTIATE_TEST_SUITE_P(Recipes, EveryRecipe,
                         ::testing::ValuesIn(all_recipes().begin(), all_recipes().end()),
                         [](const auto& test) {
                           std::string name(test.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// What a replica's own unmerged gradients add is all that separates it from the shared model (DGA).
TEST(OwnStep, IsTheSharedModelWithoutTheUnmergedGradients) {
  EngineOptions options;
  options.recipe = find_recipe("dga").value();
  options.lr.peak = 0.02;
  QuadraticWorkload workload(301);
  Cluster cluster(options, workload, {1, 1});
  for (int step = 0; step < 9; ++step) cluster.step();
  for (ClusterReplica& replica : cluster.replicas) {
    std::vector<double> own(301);
    for (const auto& [round, gradient] : replica.exchange->in_flight()) {
      for (std::size_t j = 0; j < own.size(); ++j)
        own[j] += 0.02 * static_cast<double>(gradient[j]);
    }
    for (std::size_t j = 0; j < own.size(); ++j) {
      EXPECT_NEAR(static_cast<double>(replica.learner->parameters()[j]),
                  static_cast<double>(replica.engine->shared()[j]) - own[j], 1e-6);
    }
  }
}

// n replicas that each see a share of a batch follow one machine that sees all of it.
TEST(DSgd, FollowsASingleMachineWithTheWholeBatch) {
  EngineOptions options;
  options.recipe = find_recipe("d-sgd").value();
  options.lr.peak = 0.05;
  QuadraticWorkload workload(501);
  Cluster cluster(options, workload, {1, 1, 1, 1});
  std::vector<std::unique_ptr<Learner>> alone;
  for (std::size_t i = 0; i < 4; ++i) alone.push_back(workload.make_learner(i));
  std::vector<float> parameters(workload.initial_parameters().begin(),
                                workload.initial_parameters().end());
  Optimizer optimizer(options.optimizer, parameters.size());
  for (int step = 0; step < 20; ++step) {
    cluster.step();
    std::vector<float> whole_batch(parameters.size());
    for (const auto& learner : alone) {
      std::ranges::copy(parameters, learner->parameters().begin());
      learner->compute_gradient();
      for (std::size_t j = 0; j < whole_batch.size(); ++j)
        whole_batch[j] += learner->gradient()[j] / 4;
    }
    optimizer.step(0, parameters, whole_batch, 0.05);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      ASSERT_NEAR(cluster.replicas[0].engine->shared()[j], parameters[j],
                  1e-4 * std::abs(parameters[j]) + 1e-6);
    }
  }
}

}  // namespace
}  // namespace longhaul::testing
