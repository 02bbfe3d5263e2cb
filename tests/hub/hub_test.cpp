#include "longhaul/hub/hub.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/hub/hub_run.h"
#include "tests/sync/cluster.h"

namespace longhaul {
namespace {

using testing::HubRunOptions;
using testing::TestReplica;

std::unique_ptr<Hub> hub_for(const HubRunOptions& options, const Clock& clock) {
  return Hub::start(testing::hub_options_of(options), clock, Log(LogLevel::kOff)).value();
}

class HubRecipes : public ::testing::TestWithParam<std::string> {};

TEST_P(HubRecipes, AllReplicasEndWithTheSameSharedModel) {
  const HubRunOptions options{.recipe = GetParam()};
  const Clock clock;
  const std::unique_ptr<Hub> hub = hub_for(options, clock);
  std::vector<std::unique_ptr<TestReplica>> replicas;
  for (std::size_t i = 0; i < options.replicas; ++i)
    replicas.push_back(std::make_unique<TestReplica>(options, i, hub->acceptor()));
  for (const auto& replica : replicas) replica->wait();
  for (const auto& replica : replicas) {
    ASSERT_FALSE(replica->failure()) << replica->failure()->message;
    EXPECT_EQ(replica->engine().steps_done(), options.steps);
    EXPECT_EQ(replica->digest(), replicas[0]->digest());
  }
  EXPECT_EQ(hub->status().mismatches, 0U);
  // They have left, and it knows.
  const Deadline limit = deadline_after(Seconds(5));
  while (hub->status().sessions > 0 && clock.now() < limit) std::this_thread::yield();
  EXPECT_EQ(hub->status().sessions, 0U);
}

INSTANTIATE_TEST_SUITE_P(Hub, HubRecipes,
                         ::testing::Values("d-sgd", "dd-ef-sgd", "dga", "static", "auto"),
                         [](const auto& recipe) {
                           std::string name = recipe.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// For fixed plans a run over the hub ends with the very bits of the lab.
TEST(Hub, GivesTheBitsOfTheSimulatedNetwork) {
  for (const std::string recipe :
       {"d-sgd", "d-ef-sgd", "static", "cocktail", "streaming-diloco", "streaming-diloco:7:6",
        "olco3-oc:5:4", "uneven-late", "olco3-oc:3:1"}) {
    const HubRunOptions options{.recipe = recipe, .replicas = 3, .steps = 40};
    testing::QuadraticWorkload workload(options.elements);
    testing::Cluster cluster(testing::engine_setup_of(options), workload, {1, 1, 1});
    for (std::size_t i = 0; i < options.steps; ++i) cluster.step();
    for (testing::ClusterReplica& replica : cluster.replicas)
      ASSERT_TRUE(replica.engine->drain().ok());
    const Clock clock;
    const std::unique_ptr<Hub> hub = hub_for(options, clock);
    std::vector<std::unique_ptr<TestReplica>> replicas;
    for (std::size_t i = 0; i < options.replicas; ++i)
      replicas.push_back(std::make_unique<TestReplica>(options, i, hub->acceptor()));
    for (const auto& replica : replicas) replica->wait();
    EXPECT_EQ(replicas[0]->digest(), digest_of(cluster.replicas[0].engine->shared())) << recipe;
  }
}

}  // namespace
}  // namespace longhaul
