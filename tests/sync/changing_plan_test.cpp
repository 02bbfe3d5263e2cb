// Plans and merge rules that change during a run: nothing is lost, and all replicas stay alike.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "longhaul/codec/digest.h"
#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

// A delay that changes during the run: what is in flight stays accounted for, and all replicas
// stay alike.
class ChangingPlan : public ::testing::TestWithParam<Merge> {};

TEST_P(ChangingPlan, KeepsReplicasAlikeAndLosesNothing) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 12; ++trial) {
    EngineOptions options =
        setup_of(GetParam(), "top_k/bf16", {.keep_ratio = 0.1, .delay_steps = 2});
    options.optimizer.kind = OptimizerKind::kSgd;
    QuadraticWorkload workload(401, random());
    Cluster cluster(options, workload, {1, 1, 1});
    for (int step = 0; step < 40; ++step) {
      if (random() % 4 == 0) {
        cluster.announce({.keep_ratio = 0.02 + 0.1 * static_cast<double>(random() % 5),
                          .delay_steps = static_cast<int>(random() % 7),
                          .merge = GetParam()});
      }
      cluster.step();
      for (const ClusterReplica& replica : cluster.replicas) {
        ASSERT_EQ(replica.engine->plan(), cluster.replicas[0].engine->plan());
        ASSERT_EQ(digest_of(replica.engine->shared()),
                  digest_of(cluster.replicas[0].engine->shared()));
        ASSERT_EQ(replica.exchange->in_flight().size(), replica.engine->rounds_in_flight());
      }
      ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << "trial " << trial << " step " << step;
    }
    for (const ClusterReplica& replica : cluster.replicas)
      ASSERT_TRUE(replica.engine->drain().ok());
    ASSERT_LT(imbalance(account_of(cluster)), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ChangingPlan,
                         ::testing::Values(Merge::kOptimizer, Merge::kOwnStep, Merge::kLate,
                                           Merge::kAhead),
                         [](const auto& test) { return test_name_of(test.param); });

// Each replica sends its own share of the elements, from the start and after a change.
TEST(KeepRatiosByReplica, AreWhatEachReplicaSends) {
  constexpr std::size_t kElements = 400;
  const auto sent = [](const ClusterReplica& replica) {
    const std::vector<float>& update = replica.exchange->in_flight().rbegin()->second;
    return update.size() - static_cast<std::size_t>(std::ranges::count(update, 0.0F));
  };
  Plan plan{.keep_ratio = 0.1, .delay_steps = 1, .keep_ratios = {0.5, 0.25, 0.05}};
  const EngineOptions options = setup_of(Merge::kLate, "top_k/fp32", plan);
  QuadraticWorkload workload(kElements, 3);
  Cluster cluster(options, workload, {1, 1, 1});
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      plan = {.delay_steps = 1, .merge = Merge::kLate, .keep_ratios = {0.01, 0.02, 0.04}};
      cluster.announce(plan);
    }
    cluster.step();
    ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << step;
    if (step == 3 || step == 4) continue;  // on its way
    for (std::size_t i = 0; i < cluster.replicas.size(); ++i)
      EXPECT_EQ(sent(cluster.replicas[i]),
                static_cast<std::size_t>(std::lround(kElements * plan.keep_ratios[i])))
          << "step " << step << " replica " << i;
  }
}

TEST(KeepRatiosByReplica, OfAnotherNumberOfReplicasAreRefused) {
  EngineOptions options = setup_of(Merge::kLate, "top_k/fp32", {});
  options.replicas = 3;
  const auto with = [](std::vector<double> ratios) {
    return Plan{.merge = Merge::kLate, .keep_ratios = std::move(ratios)};
  };
  EXPECT_TRUE(check_plan(with({0.1, 0.2, 0.3}), options).ok());
  EXPECT_TRUE(check_plan(with({}), options).ok());
  EXPECT_EQ(check_plan(with({0.1, 0.2}), options).error().message,
            "keep_ratios of 2 replicas: expected 3");
}

// Gradients that do not depend on the parameters and end after some steps.
class FadingLearner final : public Learner {
 public:
  FadingLearner(std::size_t elements, std::size_t steps, std::uint64_t seed)
      : random_(seed), steps_left_(steps), parameters_(elements), gradient_(elements) {}

  [[nodiscard]] std::span<float> parameters() override { return parameters_; }
  [[nodiscard]] std::span<float> gradient() override { return gradient_; }
  double compute_gradient() override {
    std::ranges::fill(gradient_, 0.0F);
    if (steps_left_ == 0) return 0;
    --steps_left_;
    for (float& g : gradient_) g = uniform(random_);
    return 0;
  }
  void save(State& /*state*/) const override {}
  Status load(const State& /*state*/) override { return Done{}; }

 private:
  std::mt19937_64 random_;
  std::size_t steps_left_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
};

class FadingWorkload final : public Workload {
 public:
  static constexpr std::size_t kElements = 97;
  static constexpr std::size_t kSteps = 25;
  [[nodiscard]] const LayerTable& layers() const override { return layers_; }
  [[nodiscard]] std::span<const float> initial_parameters() const override { return initial_; }
  [[nodiscard]] std::unique_ptr<Learner> make_learner(std::size_t index) override {
    return std::make_unique<FadingLearner>(kElements, kSteps, index + 1);
  }
  [[nodiscard]] Evaluation evaluate(std::span<const float> /*parameters*/,
                                    std::size_t /*samples*/) override {
    return {};
  }

 private:
  LayerTable layers_{{.name = "all", .offset = 0, .count = kElements}};
  std::vector<float> initial_ = std::vector<float>(kElements);
};

// In the end every gradient has moved the shared model by lr / (1 - μ), whichever rules carried it
// and however often it was returned.
void expect_whole_move(OptimizerKind kind, const char* codec, std::uint64_t seed,
                       bool returns_some = false) {
  constexpr double kLr = 0.02;
  std::mt19937_64 random(seed);
  EngineOptions options = setup_of(Merge::kLate, codec, {.keep_ratio = 0.2, .delay_steps = 3});
  options.optimizer.kind = kind;
  options.optimizer.momentum = 0.8F;
  FadingWorkload workload;
  Cluster cluster(options, workload, {1, 1, 1});
  std::mt19937_64 returning(seed + 100);
  for (ClusterReplica& replica : cluster.replicas) {
    replica.returning->returns = [&](RoundId round) {
      return returns_some && round.step < 100 && returning() % 3 == 0;
    };
  }
  std::vector<double> gradients(FadingWorkload::kElements);
  for (int step = 0; step < 400; ++step) {
    if (step < 60 && random() % 6 == 0) {
      cluster.announce({.keep_ratio = 0.2,
                        .delay_steps = static_cast<int>(random() % 5),
                        .merge = random() % 2 == 0 ? Merge::kLate : Merge::kAhead});
    }
    cluster.step();
    for (const ClusterReplica& replica : cluster.replicas) {
      ASSERT_EQ(digest_of(replica.engine->shared()),
                digest_of(cluster.replicas[0].engine->shared()));
      for (std::size_t j = 0; j < gradients.size(); ++j)
        gradients[j] += static_cast<double>(replica.learner->gradient()[j]) / 3;
    }
  }
  ASSERT_TRUE(cluster.replicas[0].engine->drain().ok());
  const double whole = kind == OptimizerKind::kSgd ? kLr : kLr / (1 - 0.8);
  for (std::size_t j = 0; j < gradients.size(); ++j) {
    ASSERT_NEAR(cluster.replicas[0].engine->shared()[j], -whole * gradients[j], 2e-4)
        << codec << " seed " << seed << " element " << j;
  }
}

TEST(ChangingRule, KeepsWhatEveryGradientHasStillToMove) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kNesterov}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      expect_whole_move(kind, "dense/fp32", seed);
      expect_whole_move(kind, "top_k/fp32", seed);
    }
  }
}

TEST(ChangingRule, KeepsWhatReturnedUpdatesHaveStillToMove) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kNesterov}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      expect_whole_move(kind, "dense/fp32", seed, true);
      expect_whole_move(kind, "top_k/fp32", seed, true);
    }
  }
}

TEST(PlanChange, TakesEffectInTheStepAfterTheMeanThatCarriesIt) {
  EngineOptions options = setup_of(Merge::kOptimizer, "dense/fp32", {.delay_steps = 2});
  QuadraticWorkload workload(11);
  Cluster cluster(options, workload, {1, 1});
  for (int step = 0; step < 5; ++step) cluster.step();
  cluster.announce({.delay_steps = 4});  // with the round of step 5, which is merged in step 7
  std::vector<std::size_t> in_flight;
  for (int step = 5; step < 12; ++step) {
    cluster.step();
    in_flight.push_back(cluster.replicas[0].engine->rounds_in_flight());
  }
  EXPECT_EQ(in_flight, (std::vector<std::size_t>{2, 2, 2, 3, 4, 4, 4}));
  cluster.announce({.delay_steps = 1});  // with the round of step 12, which is merged in step 16
  in_flight.clear();
  for (int step = 12; step < 19; ++step) {
    cluster.step();
    in_flight.push_back(cluster.replicas[0].engine->rounds_in_flight());
  }
  EXPECT_EQ(in_flight, (std::vector<std::size_t>{4, 4, 4, 4, 4, 1, 1}));
}

}  // namespace
}  // namespace longhaul::testing
