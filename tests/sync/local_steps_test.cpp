// Updates that are the delta of several local steps: the published methods that are special cases,
// long delays, and periods that change.
#include <gtest/gtest.h>

#include "tests/sync/cluster.h"
#include "tests/sync/replicas_by_hand.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kLocalElements = 1001;
constexpr int kPeriod = 5;

TEST(LocalSteps, WithoutDelayAreLocalSgd) {
  EngineOptions options = local_options("dense/fp32", {.period_steps = kPeriod});
  options.optimizer.kind = OptimizerKind::kMomentum;
  QuadraticWorkload workload(kLocalElements);
  Cluster cluster(options, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, options);
  for (int step = 0; step < 4 * kPeriod; ++step) {
    cluster.step();
    by_hand.step();
    if ((step + 1) % kPeriod == 0) {
      const std::vector<float> mean = by_hand.mean();
      for (const auto& learner : by_hand.learners)
        std::ranges::copy(mean, learner->parameters().begin());
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[0].engine->shared(), mean));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[i].learner->parameters(),
                                          by_hand.learners[i]->parameters()));
    }
  }
}

// CoCoD-SGD: at the end of a period, the mean of the models at its start, moved by the replica's
// own steps since then.
TEST(LocalSteps, OnePeriodLateAreCoCoDSgd) {
  EngineOptions options =
      local_options("dense/fp32", {.delay_steps = kPeriod, .period_steps = kPeriod});
  options.optimizer.kind = OptimizerKind::kMomentum;
  QuadraticWorkload workload(kLocalElements);
  Cluster cluster(options, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, options);
  std::vector<float> mean_at_start = by_hand.mean();
  std::vector<std::vector<float>> at_start(3, mean_at_start);
  for (int step = 0; step < 5 * kPeriod; ++step) {
    cluster.step();
    by_hand.step();
    if ((step + 1) % kPeriod == 0) {
      for (std::size_t i = 0; i < 3; ++i) {
        const std::span<float> x = by_hand.learners[i]->parameters();
        for (std::size_t j = 0; j < x.size(); ++j) x[j] += mean_at_start[j] - at_start[i][j];
        at_start[i].assign(x.begin(), x.end());
      }
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[0].engine->shared(), mean_at_start));
      mean_at_start = by_hand.mean();
    }
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[i].learner->parameters(),
                                          by_hand.learners[i]->parameters()));
    }
  }
}

TEST(LocalSteps, OfOneStepWithoutDelayAreDSgdWithSgd) {
  const EngineOptions local = local_options("dense/fp32", {});
  EngineOptions d_sgd = local;
  d_sgd.recipe.plan.merge = Merge::kOptimizer;
  QuadraticWorkload workload(kLocalElements);
  Cluster one(local, workload, {1, 1, 1});
  Cluster other(d_sgd, workload, {1, 1, 1});
  for (int step = 0; step < 30; ++step) {
    one.step();
    other.step();
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_near(one.replicas[i].learner->parameters(),
                                          other.replicas[i].learner->parameters()));
    }
  }
}

// ηλ = 0.1 and H = 4: a period moves by 1 - 0.9⁴ = 0.34 of the way, and without compensation a
// delay of s periods is stable only below 2 sin(π / (2(2s + 1))), which is 0.18 for s = 8.
double loss_after_long_delay(bool compensates_delay) {
  constexpr int kSteps = 600;
  EngineOptions options = local_options("dense/fp32", {.delay_steps = 8 * 4, .period_steps = 4});
  options.recipe.local.compensates_delay = compensates_delay;
  options.lr.peak = 0.1;
  QuadraticWorkload workload(51, 3, 0.0F);
  Cluster cluster(options, workload, {1, 1, 1});
  for (int step = 0; step < kSteps; ++step) cluster.step();
  return workload.evaluate(cluster.replicas[0].engine->shared(), 1).loss;
}

TEST(LocalSteps, LongDelaysConvergeOnlyWithCompensation) {
  EXPECT_LT(loss_after_long_delay(true), 0.02);
  EXPECT_GT(loss_after_long_delay(false), 100);
}

// The rounds of a run whose period becomes 2 with the mean of the round of step 3.
std::vector<std::size_t> rounds_with_shorter_period(int delay_steps) {
  QuadraticWorkload workload(11);
  Cluster cluster(local_options("dense/fp32", {.delay_steps = delay_steps, .period_steps = 4}),
                  workload, {1, 1});
  cluster.announce({.delay_steps = delay_steps, .period_steps = 2, .merge = Merge::kLate});
  std::vector<std::size_t> rounds;
  for (int step = 0; step < 12; ++step) {
    const std::size_t next = cluster.replicas[0].engine->next_round();
    if (rounds.empty() || rounds.back() != next) rounds.push_back(next);
    cluster.step();
  }
  return rounds;
}

TEST(LocalSteps, AnotherPeriodBeginsWhereThePresentOneEnds) {
  EXPECT_EQ(rounds_with_shorter_period(0), (std::vector<std::size_t>{3, 5, 7, 9, 11}));
  EXPECT_EQ(rounds_with_shorter_period(1), (std::vector<std::size_t>{3, 7, 9, 11}));
}

TEST(LocalSteps, EndWhereTheRuleHasNone) {
  EngineOptions options = local_options("dense/fp32", {.delay_steps = 1, .period_steps = 4});
  QuadraticWorkload workload(11);
  Cluster cluster(options, workload, {1, 1});
  cluster.announce({.merge = Merge::kAhead});  // with the round of step 3, merged in step 4
  for (int step = 0; step < 5; ++step) cluster.step();
  EXPECT_EQ(cluster.replicas[0].engine->plan().merge, Merge::kAhead);
  EXPECT_EQ(cluster.replicas[0].engine->next_round(), 5U);
}

TEST(LocalSteps, AreRefusedWhereTheRuleHasNone) {
  QuadraticWorkload workload(11);
  EXPECT_THROW(
      Cluster(setup_of(Merge::kOptimizer, "dense/fp32", {.period_steps = 2}), workload, {1}),
      std::logic_error);
}

}  // namespace
}  // namespace longhaul::testing
