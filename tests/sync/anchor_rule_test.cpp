// Overlap-Local-SGD against the published algorithm, written down plainly.
#include <gtest/gtest.h>

#include "longhaul/codec/digest.h"
#include "tests/sync/cluster.h"
#include "tests/sync/replicas_by_hand.h"

namespace longhaul::testing {
namespace {

EngineOptions overlap_options(int period_steps, int delay_steps) {
  EngineOptions options;
  options.recipe = find_recipe("overlap-local-sgd").value();
  options.recipe.plan.period_steps = period_steps;
  options.recipe.plan.delay_steps = delay_steps;
  options.lr.peak = 0.02;
  return options;
}

// At the end of a period: x = (1 - α) x + α z; the mean of the x moves z at the end of the next
// one.
TEST(Anchor, OnePeriodLateIsOverlapLocalSgd) {
  constexpr int kSteps = 5;
  constexpr float kPull = 0.6F;
  constexpr float kMomentum = 0.7F;
  const EngineOptions options = overlap_options(kSteps, kSteps);
  QuadraticWorkload workload(301);
  Cluster cluster(options, workload, {1, 1, 1});
  ReplicasByHand by_hand(workload, 3, options);
  std::vector<float> anchor = by_hand.mean();
  std::vector<float> velocity(anchor.size());
  std::vector<float> mean_on_its_way;
  for (int step = 0; step < 6 * kSteps; ++step) {
    cluster.step();
    by_hand.step();
    if ((step + 1) % kSteps == 0) {
      for (std::size_t j = 0; j < mean_on_its_way.size(); ++j) {
        velocity[j] = kMomentum * velocity[j] + mean_on_its_way[j] - anchor[j];
        anchor[j] += velocity[j];
      }
      for (const auto& learner : by_hand.learners) {
        if (mean_on_its_way.empty()) break;
        for (std::size_t j = 0; j < anchor.size(); ++j) {
          float& x = learner->parameters()[j];
          x += kPull * (anchor[j] - x);
        }
      }
      mean_on_its_way = by_hand.mean();
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[0].engine->shared(), anchor));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_near(cluster.replicas[i].learner->parameters(),
                                          by_hand.learners[i]->parameters()));
    }
  }
}

TEST(Anchor, IsTheSameOnAllReplicasWhateverTheDelay) {
  for (const int delay : {0, 1, 4, 7, 13}) {
    QuadraticWorkload workload(301);
    Cluster cluster(overlap_options(4, delay), workload, {1, 2, 0.5});
    cluster.replicas[1].returning->returns = [](RoundId round) { return round.step % 8 == 3; };
    for (int step = 0; step < 40; ++step) {
      cluster.step();
      for (const ClusterReplica& replica : cluster.replicas) {
        ASSERT_EQ(digest_of(replica.engine->shared()),
                  digest_of(cluster.replicas[0].engine->shared()));
      }
    }
  }
}

}  // namespace
}  // namespace longhaul::testing
