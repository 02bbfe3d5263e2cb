// Updates that are the delta of several local steps: what they add up to, and the published methods
// that are special cases.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "longhaul/codec/digest.h"
#include "tests/sync/cluster.h"
#include "tests/sync/replicas_by_hand.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kLocalElements = 1001;
using Doubles = std::vector<double>;

EngineSetup local_setup(const char* codec, const Plan& plan) {
  EngineSetup setup = setup_of(Merge::kLate, codec, plan);
  setup.optimizer.kind = OptimizerKind::kSgd;
  return setup;
}

// Weighted mean over replicas of value(replica, element).
template <typename Value>
Doubles mean_over_replicas(const Cluster& cluster, Value value) {
  double weights = 0;
  Doubles mean(cluster.replicas[0].updates.size());
  for (const ClusterReplica& replica : cluster.replicas) {
    const auto weight = static_cast<double>(replica.weight);
    weights += weight;
    for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += weight * value(replica, j);
  }
  for (double& m : mean) m /= weights;
  return mean;
}

// How far mean_k x_k is from x_init - mean of all local steps, as a share of those.
double identity_error(const Cluster& cluster, const Workload& workload) {
  const Doubles stands = mean_over_replicas(cluster, [](const ClusterReplica& r, std::size_t j) {
    return static_cast<double>(r.learner->parameters()[j]);
  });
  const Doubles moved = mean_over_replicas(
      cluster, [](const ClusterReplica& r, std::size_t j) { return r.updates[j]; });
  double off = 0;
  double all = 0;
  for (std::size_t j = 0; j < stands.size(); ++j) {
    const auto initial = static_cast<double>(workload.initial_parameters()[j]);
    off += std::abs(stands[j] - (initial - moved[j]));
    all += std::abs(moved[j]);
  }
  return off / all;
}

struct Trial {
  EngineSetup setup;
  bool has_unequal_ratios = false;
  bool changes_plan = false;
  bool returns_some = false;
};

int draw(std::mt19937_64& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
}

Plan draw_plan(std::mt19937_64& random) {
  Plan plan{.keep_ratio = 0.02 + 0.01 * draw(random, 0, 30),
            .period_steps = draw(random, 1, 16),
            .merge = Merge::kLate};
  const bool is_in_periods = random() % 2 == 0;
  plan.delay_steps = is_in_periods ? draw(random, 0, 8) * plan.period_steps : draw(random, 0, 20);
  return plan;
}

Trial draw_trial(std::mt19937_64& random) {
  constexpr std::array kCodecs{"dense/fp32", "dense/bf16",       "dense/4bit",    "top_k/bf16",
                               "top_k/2bit", "chunk_top_k/2bit", "random_k/bf16", "cocktail",
                               "sign",       "low_rank/fp32"};
  constexpr std::array kKinds{OptimizerKind::kSgd, OptimizerKind::kMomentum,
                              OptimizerKind::kNesterov, OptimizerKind::kAdamW};
  Trial trial{.setup =
                  setup_of(Merge::kLate, kCodecs[random() % kCodecs.size()], draw_plan(random))};
  trial.setup.optimizer.kind = kKinds[random() % kKinds.size()];
  trial.setup.layers = {{.name = "matrix", .offset = 0, .count = 600, .shape = {30, 20}},
                        {.name = "rest", .offset = 600, .count = 401}};
  trial.has_unequal_ratios = random() % 2 == 0;
  trial.changes_plan = random() % 2 == 0;
  trial.returns_some = random() % 2 == 0;
  return trial;
}

std::string text_of(const Trial& trial, int step) {
  const Plan& plan = trial.setup.recipe.plan;
  return trial.setup.recipe.codec.name() + " τ=" + std::to_string(plan.delay_steps) +
         " H=" + std::to_string(plan.period_steps) + " step " + std::to_string(step);
}

void prepare(const Trial& trial, Cluster& cluster, std::mt19937_64& random) {
  for (std::size_t i = 0; i < cluster.replicas.size(); ++i) {
    if (trial.has_unequal_ratios) cluster.set_ratio(i, 0.01 * draw(random, 1, 40));
    if (trial.returns_some)
      cluster.replicas[i].returning->returns = [&random](RoundId) { return random() % 3 == 0; };
  }
}

TEST(LocalSteps, MoveTheMeanOfTheReplicasByTheirMean) {
  std::mt19937_64 random(31);
  for (int number = 0; number < 60; ++number) {
    const Trial trial = draw_trial(random);
    QuadraticWorkload workload(kLocalElements, random());
    Cluster cluster(trial.setup, workload, {1, 2, 0.5});
    prepare(trial, cluster, random);
    for (int step = 0; step < 60; ++step) {
      if (trial.changes_plan && random() % 4 == 0) cluster.announce(draw_plan(random));
      cluster.step();
      ASSERT_LT(identity_error(cluster, workload), 1e-5) << text_of(trial, step);
      ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << text_of(trial, step);
      for (const ClusterReplica& replica : cluster.replicas) {
        ASSERT_EQ(digest_of(replica.engine->shared()),
                  digest_of(cluster.replicas[0].engine->shared()));
      }
    }
    for (const ClusterReplica& replica : cluster.replicas)
      ASSERT_TRUE(replica.engine->drain().ok());
    ASSERT_LT(identity_error(cluster, workload), 1e-5) << text_of(trial, 60);
  }
}

TEST(LocalSteps, TheIdentityNoticesAMessageThatIsLost) {
  QuadraticWorkload workload(kLocalElements);
  Cluster cluster(
      local_setup("top_k/bf16", {.keep_ratio = 0.1, .delay_steps = 6, .period_steps = 4}), workload,
      {1, 1, 1});
  cluster.replicas[1].returning->returns = [](RoundId round) { return round.step == 7; };
  cluster.replicas[1].returning->loses_them = true;
  for (int step = 0; step < 20; ++step) cluster.step();
  EXPECT_GT(identity_error(cluster, workload), 1e-5);
}

constexpr int kPeriod = 5;

TEST(LocalSteps, WithoutDelayAreLocalSgd) {
  EngineSetup setup = local_setup("dense/fp32", {.period_steps = kPeriod});
  setup.optimizer.kind = OptimizerKind::kMomentum;
  QuadraticWorkload workload(kLocalElements);
  Cluster cluster(setup, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, setup);
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
  EngineSetup setup = local_setup("dense/fp32", {.delay_steps = kPeriod, .period_steps = kPeriod});
  setup.optimizer.kind = OptimizerKind::kMomentum;
  QuadraticWorkload workload(kLocalElements);
  Cluster cluster(setup, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, setup);
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
  const EngineSetup local = local_setup("dense/fp32", {});
  EngineSetup d_sgd = local;
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
  EngineSetup setup = local_setup("dense/fp32", {.delay_steps = 8 * 4, .period_steps = 4});
  setup.recipe.local.compensates_delay = compensates_delay;
  setup.lr.peak = 0.1;
  QuadraticWorkload workload(51, 3, 0.0F);
  Cluster cluster(setup, workload, {1, 1, 1});
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
  Cluster cluster(local_setup("dense/fp32", {.delay_steps = delay_steps, .period_steps = 4}),
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
  EngineSetup setup = local_setup("dense/fp32", {.delay_steps = 1, .period_steps = 4});
  QuadraticWorkload workload(11);
  Cluster cluster(setup, workload, {1, 1});
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
