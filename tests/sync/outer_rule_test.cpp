// DiLoCo and SparseLoCo against what is published, written down plainly.
#include <gtest/gtest.h>

#include <map>

#include "longhaul/codec/payload.h"
#include "tests/sync/cluster.h"
#include "tests/sync/replicas_by_hand.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kOuterElements = 5000;  // more than one chunk of 4096
constexpr int kOuterPeriod = 6;

EngineOptions outer_options(const char* recipe) {
  EngineOptions options;
  options.recipe = find_recipe(recipe).value();
  options.recipe.plan.period_steps = kOuterPeriod;
  options.optimizer.kind = OptimizerKind::kAdamW;
  options.lr.peak = 0.01;
  return options;
}

void start_from(std::span<const float> shared, ReplicasByHand& by_hand) {
  for (const auto& learner : by_hand.learners)
    std::ranges::copy(shared, learner->parameters().begin());
}

TEST(Outer, StepsWithTheMeanOfWhatReplicasMovedAsInDiLoCo) {
  const EngineOptions options = outer_options("diloco");
  QuadraticWorkload workload(kOuterElements);
  Cluster cluster(options, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, options);
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
  const EngineOptions options = outer_options("sparseloco");
  QuadraticWorkload workload(kOuterElements);
  Cluster cluster(options, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, options);
  Workers alone;
  const auto codec = make_codec(options.recipe.codec, {}, alone);
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
          codec->take({.residual = held_back[i], .keep_ratio = options.recipe.plan.keep_ratio});
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
  EngineOptions options = outer_options("streaming-diloco");
  options.recipe.codec = parse_codec("dense/fp32").value();
  options.recipe.local.fragments = 1;
  options.recipe.plan.delay_steps = kDelay;
  QuadraticWorkload workload(301);
  Cluster cluster(options, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, options);
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

// Streaming DiLoCo of several fragments in 4 bits: what a fragment sends is rounded, and where its
// replica is is not.
TEST(Outer, KeepsWhereItIsWhileFragmentsAreRoundedAndOnTheirWay) {
  constexpr int kDelay = 3;
  EngineOptions options = outer_options("streaming-diloco");
  options.recipe.plan.delay_steps = kDelay;
  QuadraticWorkload workload(301);
  Cluster cluster(options, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, options);
  Workers alone;
  const auto codec = make_codec(options.recipe.codec, {}, alone);
  const std::vector<Part> parts = split_into_parts({}, 301, 3);
  std::vector<float> shared = by_hand.mean();
  std::vector<float> velocity(shared.size());
  std::map<int, std::vector<float>> means;  // by the step they are due in
  for (int step = 0; step < 5 * kOuterPeriod; ++step) {
    cluster.step();
    by_hand.step();
    const int place = step % kOuterPeriod;  // of fragments 0, 1 and 2: 1, 3 and 5
    const Part& part = parts[static_cast<std::size_t>(place / 2)];
    if (place % 2 == 1) {
      std::vector<float>& mean = means[step + kDelay];
      mean.resize(part.count);
      for (const auto& learner : by_hand.learners) {
        std::vector<float> distance(part.of(std::span(shared)).begin(),
                                    part.of(std::span(shared)).end());
        for (std::size_t j = 0; j < part.count; ++j)
          distance[j] -= learner->parameters()[part.first + j];
        const ByteBuffer payload = codec->take({.residual = distance});
        add(PayloadView::parse(payload, part.count).value(), 1.0F / 3, mean);
      }
    }
    if (const auto due = means.find(step); due != means.end()) {
      const Part& merged = parts[static_cast<std::size_t>((step - kDelay) % kOuterPeriod / 2)];
      for (std::size_t j = 0; j < merged.count; ++j) {
        const std::size_t at = merged.first + j;
        velocity[at] = 0.9F * velocity[at] + due->second[j];
        shared[at] -= 0.7F * (due->second[j] + 0.9F * velocity[at]);
        for (const auto& learner : by_hand.learners)
          learner->parameters()[at] = 0.5F * learner->parameters()[at] + 0.5F * shared[at];
      }
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[0].engine->shared(), shared));
    }
    ASSERT_NO_FATAL_FAILURE(
        expect_near(cluster.replicas[1].learner->parameters(), by_hand.learners[1]->parameters()));
  }
  EXPECT_EQ(means.size(), 15U);
}

// Plain SGD with rate 1 outside, and nothing compressed: the late correction, also where a message
// comes back.
TEST(Outer, OfPlainSgdIsTheLateCorrection) {
  EngineOptions outer = outer_options("diloco");
  outer.recipe.local = {};
  outer.recipe.plan.delay_steps = 8;
  EngineOptions late = outer;
  late.recipe.plan.merge = Merge::kLate;
  QuadraticWorkload workload(301);
  Cluster one(outer, workload, {1, 1, 1});
  Cluster other(late, workload, {1, 1, 1});
  for (Cluster* cluster : {&one, &other}) {
    cluster->replicas[1].returning->returns = [](RoundId round) {
      return round.step == 2 * kOuterPeriod - 1;
    };
  }
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
