// Nothing is lost and nothing counts twice: Σ weighted updates = Σ means × total weight +
// residuals + in flight.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

constexpr double kTolerance = 1e-5;

CodecOptions random_codec(std::mt19937_64& random) {
  constexpr std::array kNames{
      "dense/fp32", "dense/bf16",    "dense/4bit", "top_k/bf16", "top_k/2bit", "chunk_top_k/2bit",
      "threshold",  "random_k/bf16", "cocktail",   "sign",       "top_k/fp32", "low_rank/fp32"};
  CodecOptions spec = parse_codec(kNames[random() % kNames.size()]).value();
  spec.threshold = 0.8F;
  return spec;
}

EngineOptions random_options(std::mt19937_64& random) {
  EngineOptions options;
  options.recipe.codec = random_codec(random);
  constexpr std::array kMerges{Merge::kOptimizer, Merge::kOwnStep, Merge::kLate, Merge::kAhead,
                               Merge::kOuter};
  options.recipe.plan = {.keep_ratio = 0.01 + 0.3 * static_cast<double>(random() % 1000) / 1000.0,
                         .delay_steps = static_cast<int>(random() % 7),
                         .merge = kMerges[random() % kMerges.size()]};
  if (has_local_steps(options.recipe.plan.merge))
    options.recipe.plan.period_steps = 1 + static_cast<int>(random() % 4);
  options.optimizer.kind = OptimizerKind::kSgd;
  options.lr.peak = 0.02;
  options.clip = random() % 2 == 0 ? 0.0 : 5.0;
  options.layers = {{.name = "matrix", .offset = 0, .count = 600, .shape = {30, 20}},
                    {.name = "rest", .offset = 600, .count = 401}};
  return options;
}

TEST(Conservation, HoldsAtEveryStepForRandomPlansAndCodecs) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const EngineOptions options = random_options(random);
    QuadraticWorkload workload(1001, random());
    const std::vector<float> weights =
        trial % 2 == 0 ? std::vector<float>{1, 1, 1} : std::vector<float>{3, 1, 0.5};
    Cluster cluster(options, workload, weights);
    for (int step = 0; step < 12; ++step) {
      cluster.step();
      ASSERT_LT(imbalance(account_of(cluster)), kTolerance)
          << options.recipe.codec.name() << " δ=" << options.recipe.plan.keep_ratio
          << " τ=" << options.recipe.plan.delay_steps << " step " << step;
    }
  }
}

TEST(Conservation, NoticesOneDroppedResidual) {
  std::mt19937_64 random(8);
  EngineOptions options = random_options(random);
  options.recipe.codec = parse_codec("top_k/bf16").value();
  QuadraticWorkload workload(1001);
  Cluster cluster(options, workload, {1, 1, 1});
  for (int step = 0; step < 5; ++step) cluster.step();
  Account account = account_of(cluster);
  const std::vector<float> residual = cluster.replicas[1].engine->residual();
  for (std::size_t j = 0; j < residual.size(); ++j)
    account.accounted[j] -= static_cast<double>(residual[j]);
  EXPECT_GT(imbalance(account), kTolerance);
}

TEST(Conservation, NoticesAMessageMergedTwice) {
  EngineOptions options;
  options.recipe.codec = parse_codec("top_k/bf16").value();
  options.recipe.plan = {.keep_ratio = 0.05, .delay_steps = 2};
  options.lr.peak = 0.02;
  QuadraticWorkload workload(1001);
  Cluster cluster(options, workload, {1, 1, 1});
  for (int step = 0; step < 5; ++step) cluster.step();
  Account account = account_of(cluster);
  const std::vector<float>& message = cluster.replicas[2].exchange->in_flight().begin()->second;
  for (std::size_t j = 0; j < message.size(); ++j)
    account.accounted[j] += static_cast<double>(message[j]);
  EXPECT_GT(imbalance(account), kTolerance);
}

// Every third update or so is left out of its mean and comes back with it.
void return_some(Cluster& cluster, std::mt19937_64& random) {
  for (ClusterReplica& replica : cluster.replicas)
    replica.returning->returns = [&random](RoundId) { return random() % 3 == 0; };
}

TEST(Conservation, HoldsWhereUpdatesAreReturned) {
  std::mt19937_64 random(9);
  for (int trial = 0; trial < 40; ++trial) {
    const EngineOptions options = random_options(random);
    QuadraticWorkload workload(1001, random());
    Cluster cluster(options, workload, {1, 1, 2});
    return_some(cluster, random);
    for (int step = 0; step < 15; ++step) {
      cluster.step();
      ASSERT_LT(imbalance(account_of(cluster)), kTolerance)
          << options.recipe.codec.name() << ' ' << name_of(options.recipe.plan.merge)
          << " τ=" << options.recipe.plan.delay_steps << " step " << step;
    }
  }
}

TEST(Conservation, NoticesAReturnedUpdateThatIsIgnored) {
  std::mt19937_64 random(10);
  EngineOptions options = random_options(random);
  options.recipe.plan.period_steps = 1;
  QuadraticWorkload workload(1001);
  Cluster cluster(options, workload, {1, 1, 1});
  cluster.replicas[1].returning->returns = [](RoundId round) { return round.step == 2; };
  cluster.replicas[1].returning->loses_them = true;
  for (int step = 0; step < 12; ++step) cluster.step();
  EXPECT_GT(imbalance(account_of(cluster)), kTolerance);
}

TEST(Conservation, CountsWhatDecays) {
  for (const Merge merge : {Merge::kOptimizer, Merge::kLate, Merge::kOuter}) {
    EngineOptions options = setup_of(merge, "top_k/bf16", {.keep_ratio = 0.1, .delay_steps = 2});
    if (has_local_steps(merge)) options.recipe.plan.period_steps = 3;
    options.recipe.residual_decay = 0.9F;
    QuadraticWorkload workload(1001);
    Cluster cluster(options, workload, {1, 2});
    for (int step = 0; step < 15; ++step) {
      cluster.step();
      ASSERT_LT(imbalance(account_of(cluster)), kTolerance) << name_of(merge);
    }
    double leaked = 0;
    for (const double lost : cluster.replicas[0].leaked) leaked += std::abs(lost);
    EXPECT_GT(leaked, 0.1);
  }
}

TEST(Conservation, AResidualThatIsNotKeptIsALeak) {
  EngineOptions options;
  options.recipe.codec = parse_codec("top_k/bf16").value();
  options.recipe.keeps_residual = false;
  options.recipe.plan.keep_ratio = 0.1;
  QuadraticWorkload workload(1001);
  Cluster cluster(options, workload, {1, 1});
  cluster.step();
  EXPECT_GT(imbalance(account_of(cluster)), kTolerance);
}

}  // namespace
}  // namespace longhaul::testing
