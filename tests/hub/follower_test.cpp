// The hub's copy of the model against the replicas', while period, delay and ratio change.
#include "longhaul/hub/follower.h"

#include <gtest/gtest.h>

#include "longhaul/codec/digest.h"
#include "tests/sync/cluster.h"
#include "tests/sync/random_runs.h"

namespace longhaul {
namespace {

using testing::Cluster;
using testing::QuadraticWorkload;

constexpr std::uint64_t kSteps = 80;

std::unique_ptr<Follower> follower_of(const EngineOptions& options, const Workload& workload) {
  const auto initial = workload.initial_parameters();
  return std::make_unique<Follower>(options, std::vector<float>(initial.begin(), initial.end()),
                                    kSteps);
}

// As a hub does that was killed: all that it knows of the model is its snapshot.
std::unique_ptr<Follower> reopened(const EngineOptions& options, const State& state) {
  auto follower = std::make_unique<Follower>(
      options, std::vector<float>(state.tensors.at("shared").size()), kSteps);
  EXPECT_TRUE(follower->load(state).ok());
  return follower;
}

class FollowerTest : public ::testing::TestWithParam<const char*> {
 protected:
  // The follower is told of the rounds that replica 0 collects: all, in order.
  void follow(Cluster& cluster) {
    cluster.replicas[0].returning->returns = [this](RoundId round) {
      // Nobody is further than the follower, and it knows every round.
      EXPECT_LE(round.step, follower_->step());
      EXPECT_TRUE(follower_->open_round(round)) << to_string(round);
      return false;
    };
    cluster.replicas[0].returning->collected = [this](const Mean& mean) {
      EXPECT_EQ(follower_->next_to_close(), mean.round);
      EXPECT_LE(follower_->next_round(), mean.round);
      if (follower_->next_round() < mean.round) ++shelved_;
      follower_->closed(mean);
    };
  }

  std::unique_ptr<Follower> follower_;
  std::size_t shelved_ = 0;  // rounds that closed while an earlier one was not merged
};

TEST_P(FollowerTest, HasTheModelOfTheReplicasWhateverThePlan) {
  std::mt19937_64 random(5);
  std::size_t compared = 0;
  for (int trial = 0; trial < 8; ++trial) {
    const EngineOptions options =
        testing::random_run_options(find_recipe(GetParam()).value(), random);
    QuadraticWorkload workload(testing::kRunElements, random());
    follower_ = follower_of(options, workload);
    Cluster cluster(options, workload, {1, 2});
    follow(cluster);
    testing::Script script(options.recipe, random());
    for (int step = 0; step < static_cast<int>(kSteps); ++step) {
      script.step(cluster);
      const Engine& replica = *cluster.replicas[0].engine;
      if (const auto digest = follower_->digest_before(replica.steps_done())) {
        ASSERT_EQ(*digest, digest_of(replica.shared())) << step;
        ++compared;
      }
      if (random() % 8 != 0) continue;
      // A hub that was killed has the snapshot, and the rounds that it had not merged.
      if (follower_->next_round() != follower_->next_to_close()) continue;
      follower_ = reopened(options, follower_->save());
    }
    cluster.settle();
    const std::uint64_t undrained = digest_of(cluster.replicas[0].engine->shared());
    ASSERT_TRUE(cluster.replicas[0].engine->drain().ok());
    EXPECT_EQ(follower_->step(), kSteps);
    EXPECT_EQ(digest_of(follower_->shared()), digest_of(cluster.replicas[0].engine->shared()));
    // Killed now, it does not take a replica that has not drained for one with another model.
    EXPECT_EQ(reopened(options, follower_->save())->digest_before(kSteps).value_or(undrained),
              undrained);
  }
  EXPECT_GT(compared, 20U);
  EXPECT_EQ(shelved_ > 0, has_local_steps(find_recipe(GetParam())->plan.merge)) << shelved_;
}

// It stands at the end of the first period from the start, with steps behind it in which the digest
// is compared.
TEST(Follower, KilledInTheFirstPeriodTakesNobodysModelForAnother) {
  const EngineOptions options{.recipe = find_recipe("diloco").value(), .lr = {.peak = 0.02}};
  QuadraticWorkload workload(testing::kRunElements);
  const std::unique_ptr<Follower> before = follower_of(options, workload);
  const std::unique_ptr<Follower> after = reopened(options, before->save());
  EXPECT_EQ(after->step(), before->step());
  for (std::uint64_t step = 0; step <= before->step(); ++step) {
    const auto digest = after->digest_before(step);
    EXPECT_TRUE(!digest || digest == before->digest_before(step)) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, FollowerTest,
                         ::testing::Values("static", "olco3-oc", "auto", "streaming-diloco",
                                           "overlap-local-sgd"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace longhaul
