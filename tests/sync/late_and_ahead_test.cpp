// What pins the late correction and the look-ahead down, on whole clusters.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

// Without a network: every replica alone, its optimizer fed with the gradients at the places where
// the cluster's replicas stood. Gives the sum of all local steps.
class LocalSteps {
 public:
  LocalSteps(const OptimizerOptions& spec, std::size_t elements)
      : optimizer_(spec, elements), total_(elements) {}

  void step(std::span<const float> at, std::span<const float> gradient, double lr) {
    std::vector<float> moved(at.begin(), at.end());
    optimizer_.step(0, moved, gradient, lr);
    for (std::size_t j = 0; j < moved.size(); ++j)
      total_[j] += static_cast<double>(at[j]) - static_cast<double>(moved[j]);
  }
  [[nodiscard]] const std::vector<double>& total() const { return total_; }

 private:
  Optimizer optimizer_;
  std::vector<double> total_;
};

// mean_k x_k = x_init - mean of all local steps, whatever the codec and however late.
void expect_identity(const EngineOptions& options, std::uint64_t seed, bool returns_some = false) {
  constexpr std::size_t kReplicas = 3;
  QuadraticWorkload workload(401, seed);
  Cluster cluster(options, workload, std::vector<float>(kReplicas, 1.0F));
  std::mt19937_64 random(seed);
  for (ClusterReplica& replica : cluster.replicas)
    replica.returning->returns = [&](RoundId) { return returns_some && random() % 3 == 0; };
  std::vector<LocalSteps> local(kReplicas, LocalSteps(options.optimizer, 401));
  const std::span<const float> initial = workload.initial_parameters();
  for (int step = 0; step < 20; ++step) {
    std::vector<std::vector<float>> at;
    for (ClusterReplica& replica : cluster.replicas)
      at.emplace_back(replica.learner->parameters().begin(), replica.learner->parameters().end());
    cluster.step();
    double off = 0;
    double moved = 0;
    for (std::size_t k = 0; k < kReplicas; ++k)
      local[k].step(at[k], cluster.replicas[k].learner->gradient(), options.lr.peak);
    for (std::size_t j = 0; j < initial.size(); ++j) {
      double steps = 0;
      double places = 0;
      for (std::size_t k = 0; k < kReplicas; ++k) {
        steps += local[k].total()[j] / kReplicas;
        places += static_cast<double>(cluster.replicas[k].learner->parameters()[j]) / kReplicas;
      }
      off += std::abs(places - (static_cast<double>(initial[j]) - steps));
      moved += std::abs(static_cast<double>(initial[j])) + std::abs(steps);
    }
    ASSERT_LT(off, 1e-5 * moved) << options.recipe.codec.name()
                                 << " δ=" << options.recipe.plan.keep_ratio
                                 << " τ=" << options.recipe.plan.delay_steps << " step " << step;
  }
}

TEST(LateCorrection, MeanOfReplicasIsTheStartMinusTheMeanOfAllLocalSteps) {
  for (const char* codec : {"dense/fp32", "dense/4bit", "top_k/bf16", "top_k/2bit",
                            "chunk_top_k/2bit", "random_k/bf16", "cocktail", "sign"}) {
    for (const int delay : {0, 1, 2, 5, 8}) {
      expect_identity(setup_of(Merge::kLate, codec, {.keep_ratio = 0.05, .delay_steps = delay}),
                      static_cast<std::uint64_t>(delay));
    }
  }
}

TEST(LateCorrection, HoldsForEveryLocalOptimizer) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                   OptimizerKind::kNesterov, OptimizerKind::kAdamW}) {
    EngineOptions options =
        setup_of(Merge::kLate, "top_k/bf16", {.keep_ratio = 0.1, .delay_steps = 3});
    options.optimizer.kind = kind;
    expect_identity(options, 3);
  }
}

TEST(LateCorrection, HoldsWhereUpdatesAreReturned) {
  for (const int delay : {0, 1, 4}) {
    EngineOptions options =
        setup_of(Merge::kLate, "top_k/bf16", {.keep_ratio = 0.1, .delay_steps = delay});
    expect_identity(options, static_cast<std::uint64_t>(delay), true);
  }
}

TEST(LateCorrection, WithoutDelayAndCompressionAndMomentumIsDSgd) {
  QuadraticWorkload workload(301);
  EngineOptions late = setup_of(Merge::kLate, "dense/fp32", {});
  late.optimizer.kind = OptimizerKind::kSgd;
  EngineOptions d_sgd = setup_of(Merge::kOptimizer, "dense/fp32", {});
  d_sgd.optimizer.kind = OptimizerKind::kSgd;
  Cluster one(late, workload, {1, 1, 1});
  Cluster other(d_sgd, workload, {1, 1, 1});
  for (int step = 0; step < 20; ++step) {
    one.step();
    other.step();
  }
  for (std::size_t j = 0; j < 301; ++j)
    EXPECT_NEAR(one.replicas[0].engine->shared()[j], other.replicas[0].engine->shared()[j], 1e-5);
}

// All replicas see the same data.
class SameDataWorkload final : public Workload {
 public:
  static constexpr std::size_t kElements = 301;
  [[nodiscard]] const LayerTable& layers() const override { return inner_.layers(); }
  [[nodiscard]] std::span<const float> initial_parameters() const override {
    return inner_.initial_parameters();
  }
  [[nodiscard]] std::unique_ptr<Learner> make_learner(std::size_t /*index*/) override {
    return inner_.make_learner(0);
  }
  [[nodiscard]] Evaluation evaluate(std::span<const float> parameters,
                                    std::size_t samples) override {
    return inner_.evaluate(parameters, samples);
  }

 private:
  QuadraticWorkload inner_{kElements};
};

// The look-ahead's pinning test: replicas that see the same data foresee exactly, so that any delay
// gives the path of synchronous momentum SGD.
TEST(LookAhead, OfIdenticalReplicasIsSynchronousMomentumSgd) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kNesterov}) {
    for (const int delay : {0, 1, 2, 5}) {
      SameDataWorkload workload;
      EngineOptions options = setup_of(Merge::kAhead, "dense/fp32", {.delay_steps = delay});
      options.optimizer.kind = kind;
      Cluster cluster(options, workload, {1, 1});
      const auto learner = workload.make_learner(0);
      Optimizer optimizer(options.optimizer, SameDataWorkload::kElements);
      for (int step = 0; step < 30; ++step) {
        cluster.step();
        learner->compute_gradient();
        optimizer.step(0, learner->parameters(), learner->gradient(), 0.02);
        for (std::size_t j = 0; j < SameDataWorkload::kElements; ++j) {
          ASSERT_NEAR(cluster.replicas[1].learner->parameters()[j], learner->parameters()[j], 2e-5)
              << "delay " << delay << " step " << step;
        }
      }
    }
  }
}

TEST(PlannerOptions, LooksAheadWhereTheStepsOfTheOptimizerCanBeForeseen) {
  EngineOptions options = setup_of(Merge::kLate, "top_k/bf16", {.delay_steps = 3});
  options.seed = 5;
  options.lr.steps = 200;
  const PlannerOptions planner = planner_options(options);
  EXPECT_TRUE(planner.may_look_ahead);
  EXPECT_EQ(planner.plan, options.recipe.plan);
  EXPECT_EQ(planner.seed, 5U);
  EXPECT_EQ(planner.steps, 200U);
  options.optimizer.kind = OptimizerKind::kAdamW;
  EXPECT_FALSE(planner_options(options).may_look_ahead);
}

}  // namespace
}  // namespace longhaul::testing
