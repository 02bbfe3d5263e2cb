// A replica that joins with another's snapshot shares the model with everyone from then on, bit for
// bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/base/state.h"
#include "longhaul/codec/digest.h"
#include "tests/sync/random_runs.h"

namespace longhaul::testing {
namespace {

// Replica `follower` ends, and a fresh one takes its place with what `donor` gives it.
void rejoin(Cluster& cluster, std::size_t follower, std::size_t donor) {
  const ByteBuffer snapshot = to_bytes(cluster.replicas[donor].engine->save_shared());
  Engine& engine = cluster.renew(follower);
  LONGHAUL_CHECK(engine.load_shared(state_from_bytes(snapshot).value()).ok());
  LONGHAUL_CHECK(std::ranges::all_of(engine.residual(), [](float e) { return e == 0; }));
}

void expect_alike(const Cluster& cluster) {
  const Engine& first = *cluster.replicas[0].engine;
  for (const ClusterReplica& replica : cluster.replicas) {
    ASSERT_EQ(digest_of(replica.engine->shared()), digest_of(first.shared()));
    ASSERT_EQ(replica.engine->plan(), first.plan());
    ASSERT_EQ(replica.engine->steps_done(), first.steps_done());
    ASSERT_EQ(replica.engine->rounds_in_flight(), first.rounds_in_flight());
  }
}

class Snapshot : public ::testing::TestWithParam<Recipe> {};

TEST_P(Snapshot, MakesAFollowerShareTheModelBitForBit) {
  std::mt19937_64 random(31);
  for (int trial = 0; trial < 6; ++trial) {
    const EngineOptions options = random_run_options(GetParam(), random);
    QuadraticWorkload workload(kRunElements, random());
    Cluster cluster(options, workload, {1, 2, 0.5});
    Script script(options.recipe, random());
    for (int step = 0; step < 40; ++step) {
      script.submit_all(cluster);
      if (random() % 10 == 0) rejoin(cluster, 2, 0);  // between the halves of a step
      cluster.merge_all();
      if (random() % 10 == 0) rejoin(cluster, 1 + random() % 2, 0);
      SCOPED_TRACE("trial " + std::to_string(trial) + ", step " + std::to_string(step));
      ASSERT_NO_FATAL_FAILURE(expect_alike(cluster));
    }
    ASSERT_GE(cluster.replicas[0].exchange->rounds_merged(), 2U);
    for (const ClusterReplica& replica : cluster.replicas)
      ASSERT_TRUE(replica.engine->drain().ok());
    ASSERT_NO_FATAL_FAILURE(expect_alike(cluster));
  }
}

TEST_P(Snapshot, IsTheSameFromEveryReplica) {
  std::mt19937_64 random(32);
  const EngineOptions options = random_run_options(GetParam(), random);
  QuadraticWorkload workload(kRunElements);
  Cluster cluster(options, workload, {1, 1});
  Script script(options.recipe, 33);
  for (int step = 0; step < 20; ++step) {
    script.step(cluster);
    ASSERT_EQ(to_bytes(cluster.replicas[0].engine->save_shared()),
              to_bytes(cluster.replicas[1].engine->save_shared()));
  }
  EXPECT_GE(cluster.replicas[0].exchange->rounds_merged(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Snapshot, ::testing::ValuesIn(all_kinds_of_recipes()),
                         [](const auto& test) { return test_name_of(test.param); });

TEST(SnapshotOfLate, HasNothingOfTheReplicasOwn) {
  QuadraticWorkload workload(51);
  Cluster cluster({.recipe = find_recipe("static").value()}, workload, {1, 1});
  for (int step = 0; step < 6; ++step) cluster.step();
  const State snapshot = cluster.replicas[0].engine->save_shared();
  EXPECT_EQ(snapshot.tensors.size(), 1U);
  EXPECT_TRUE(snapshot.tensors.contains("shared"));
  EXPECT_TRUE(snapshot.blobs.empty());
}

TEST(SnapshotOfLate, LeavesAFollowerAtTheSharedModel) {
  QuadraticWorkload workload(51);
  Cluster cluster({.recipe = find_recipe("static").value()}, workload, {1, 1});
  for (int step = 0; step < 6; ++step) cluster.step();
  rejoin(cluster, 1, 0);
  const ClusterReplica& follower = cluster.replicas[1];
  EXPECT_EQ(digest_of(follower.learner->parameters()), digest_of(follower.engine->shared()));
}

TEST(SnapshotRefusal, OfACheckpoint) {
  QuadraticWorkload workload(51);
  Cluster cluster({.recipe = find_recipe("static").value()}, workload, {1});
  cluster.step();
  Engine& engine = *cluster.replicas[0].engine;
  EXPECT_EQ(engine.load_shared(engine.save()).error().message, "snapshot: this is a checkpoint");
  EXPECT_EQ(engine.load(engine.save_shared()).error().message, "checkpoint: this is a snapshot");
}

TEST(SnapshotRefusal, OfRatesThatDoNotFit) {
  QuadraticWorkload workload(51);
  Cluster cluster({.recipe = find_recipe("dga").value()}, workload, {1});
  cluster.step();
  State snapshot = cluster.replicas[0].engine->save_shared();
  snapshot.values["rates"] = nlohmann::json::array();
  EXPECT_EQ(cluster.replicas[0].engine->load_shared(snapshot).error().message,
            "snapshot: rates: not one for each round in flight");
}

}  // namespace
}  // namespace longhaul::testing
