// DiLoCo and SparseLoCo against what is published, written down plainly.
#include <gtest/gtest.h>

#include "longhaul/codec/payload.h"
#include "tests/sync/cluster.h"
#include "tests/sync/replicas_by_hand.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kOuterElements = 5000;  // more than one chunk of 4096
constexpr int kOuterPeriod = 6;

EngineSetup outer_setup(const char* recipe) {
  EngineSetup setup;
  setup.recipe = find_recipe(recipe).value();
  setup.recipe.plan.period_steps = kOuterPeriod;
  setup.optimizer.kind = OptimizerKind::kAdamW;
  setup.lr.peak = 0.01;
  return setup;
}

void start_from(std::span<const float> shared, ReplicasByHand& by_hand) {
  for (const auto& learner : by_hand.learners)
    std::ranges::copy(shared, learner->parameters().begin());
}

TEST(Outer, StepsWithTheMeanOfWhatReplicasMovedAsInDiLoCo) {
  const EngineSetup setup = outer_setup("diloco");
  QuadraticWorkload workload(kOuterElements);
  Cluster cluster(setup, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, setup);
  std::vector<float> shared = by_hand.mean();
  std::vector<float> velocity(shared.size());
  for (int step = 0; step < 4 * kOuterPeriod; ++step) {
    cluster.step();
    by_hand.step();
    if ((step + 1) % kOuterPeriod == 0) {
      const std::vector<float> mean = by_hand.mean();
      for (std::size_t j = 0; j < shared.size(); ++j) {
        const float moved = shared[j] - mean[j];
        velocity[j] = 0.9F * velocity[j] + moved;
        shared[j] -= 0.7F * (moved + 0.9F * velocity[j]);
      }
      start_from(shared, by_hand);
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[0].engine->shared(), shared));
    }
    ASSERT_NO_FATAL_FAILURE(
        expect_near(cluster.replicas[2].learner->parameters(), by_hand.learners[2]->parameters()));
  }
}

TEST(Outer, DecaysWhatWasHeldBackAndStartsFromTheSharedModelAsInSparseLoCo) {
  const EngineSetup setup = outer_setup("sparseloco");
  QuadraticWorkload workload(kOuterElements);
  Cluster cluster(setup, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, setup);
  Workers alone;
  const auto codec = make_codec(setup.recipe.codec, {}, alone);
  std::vector<float> shared = by_hand.mean();
  std::vector<std::vector<float>> held_back(3, std::vector<float>(shared.size()));
  for (int step = 0; step < 4 * kOuterPeriod; ++step) {
    cluster.step();
    by_hand.step();
    if ((step + 1) % kOuterPeriod != 0) continue;
    std::vector<float> mean(shared.size());
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < shared.size(); ++j) {
        held_back[i][j] =
            0.95F * held_back[i][j] + shared[j] - by_hand.learners[i]->parameters()[j];
      }
      const ByteBuffer payload =
          codec->take({.residual = held_back[i], .keep_ratio = setup.recipe.plan.keep_ratio});
      add(PayloadView::parse(payload, shared.size()).value(), 1.0F / 3, mean);
    }
    for (std::size_t j = 0; j < shared.size(); ++j) shared[j] -= mean[j];
    start_from(shared, by_hand);
    const std::span<const float> got = cluster.replicas[0].engine->shared();
    double off = 0;
    for (std::size_t j = 0; j < got.size(); ++j)
      off += std::abs(static_cast<double>(got[j]) - static_cast<double>(shared[j]));
    // Rounding may swap two values that are nearly equal, and no more.
    ASSERT_LT(off / static_cast<double>(got.size()), 1e-4) << step;
  }
}

// Streaming DiLoCo of one fragment: x = α x + (1 - α) shared when a mean is due, and the next
// update is shared - x.
TEST(Outer, MixesWhereItIsWithTheSharedModelAsInStreamingDiLoCo) {
  constexpr int kDelay = 2;
  EngineSetup setup = outer_setup("streaming-diloco");
  setup.recipe.codec = parse_codec("dense/fp32").value();
  setup.recipe.local.fragments = 1;
  setup.recipe.plan.delay_steps = kDelay;
  QuadraticWorkload workload(301);
  Cluster cluster(setup, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, setup);
  std::vector<float> shared = by_hand.mean();
  std::vector<float> velocity(shared.size());
  std::vector<float> mean;
  for (int step = 0; step < 5 * kOuterPeriod; ++step) {
    cluster.step();
    by_hand.step();
    if ((step + 1) % kOuterPeriod == 0) mean = by_hand.mean();
    if (!mean.empty() && (step + 1) % kOuterPeriod == kDelay) {
      for (std::size_t j = 0; j < shared.size(); ++j) {
        const float moved = shared[j] - mean[j];
        velocity[j] = 0.9F * velocity[j] + moved;
        shared[j] -= 0.7F * (moved + 0.9F * velocity[j]);
        for (const auto& learner : by_hand.learners)
          learner->parameters()[j] = 0.5F * learner->parameters()[j] + 0.5F * shared[j];
      }
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[0].engine->shared(), shared));
    }
    ASSERT_NO_FATAL_FAILURE(
        expect_near(cluster.replicas[1].learner->parameters(), by_hand.learners[1]->parameters()));
  }
}

// Plain SGD with rate 1 outside, and nothing compressed: the late correction.
TEST(Outer, OfPlainSgdIsTheLateCorrection) {
  EngineSetup outer = outer_setup("diloco");
  outer.recipe.local = {};
  outer.recipe.plan.delay_steps = 8;
  EngineSetup late = outer;
  late.recipe.plan.merge = Merge::kLate;
  QuadraticWorkload workload(301);
  Cluster one(outer, workload, {1, 1, 1});
  Cluster other(late, workload, {1, 1, 1});
  for (int step = 0; step < 5 * kOuterPeriod; ++step) {
    one.step();
    other.step();
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_near(one.replicas[i].learner->parameters(),
                                          other.replicas[i].learner->parameters()));
    }
  }
}

}  // namespace
}  // namespace longhaul::testing
