// What local steps add up to: the mean of the replicas is where they began minus the mean of all
// their steps, whatever is compressed, late or returned.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "longhaul/codec/digest.h"
#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kIdentityElements = 1001;
using Doubles = std::vector<double>;

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
  EngineOptions options;
  bool has_unequal_ratios = false;
  bool changes_plan = false;
  bool returns_some = false;
};

int draw(std::mt19937_64& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
}

// Long enough for some rounds to be merged, whatever is drawn first.
int steps_of(const Plan& plan) { return 60 + plan.delay_steps + 2 * plan.period_steps; }

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
  Trial trial{.options =
                  setup_of(Merge::kLate, kCodecs[random() % kCodecs.size()], draw_plan(random))};
  trial.options.optimizer.kind = kKinds[random() % kKinds.size()];
  trial.options.layers = {{.name = "matrix", .offset = 0, .count = 600, .shape = {30, 20}},
                          {.name = "rest", .offset = 600, .count = 401}};
  trial.has_unequal_ratios = random() % 2 == 0;
  trial.changes_plan = random() % 2 == 0;
  trial.returns_some = random() % 2 == 0;
  return trial;
}

std::string text_of(const Trial& trial, int step) {
  const Plan& plan = trial.options.recipe.plan;
  return trial.options.recipe.codec.name() + " τ=" + std::to_string(plan.delay_steps) +
         " H=" + std::to_string(plan.period_steps) + " step " + std::to_string(step);
}

void prepare(const Trial& trial, Cluster& cluster, std::mt19937_64& random) {
  for (std::size_t i = 0; i < cluster.replicas.size(); ++i) {
    if (trial.has_unequal_ratios) cluster.set_ratio(i, 0.01 * draw(random, 1, 40));
    if (trial.returns_some)
      cluster.replicas[i].returning->returns = [&random](RoundId) { return random() % 3 == 0; };
  }
}

// The identity holds for replicas that never exchange anything: these do.
void expect_merges(const Trial& trial, int steps, const Cluster& cluster) {
  const std::size_t merged = cluster.replicas[0].exchange->rounds_merged();
  ASSERT_GE(merged, trial.changes_plan ? 1U : 2U) << text_of(trial, steps);
  if (trial.changes_plan) return;
  ASSERT_EQ(merged, rounds_merged_after(steps, trial.options.recipe.plan)) << text_of(trial, steps);
}

// Nothing is on its way, and only what was held back separates a replica from the shared model.
void expect_drained(const Cluster& cluster) {
  for (const ClusterReplica& replica : cluster.replicas) {
    ASSERT_TRUE(replica.engine->drain().ok());
    ASSERT_EQ(replica.engine->rounds_in_flight(), 0U);
    ASSERT_TRUE(replica.exchange->in_flight().empty());
    const std::vector<float> residual = replica.engine->residual();
    for (std::size_t j = 0; j < kIdentityElements; ++j) {
      const float expected = replica.engine->shared()[j] - residual[j];
      ASSERT_NEAR(replica.learner->parameters()[j], expected, 1e-6 * (1 + std::abs(expected)));
    }
  }
}

// A step of all replicas, after which the identity and the account hold and all are alike.
void expect_good_step(const Trial& trial, int step, const Workload& workload, Cluster& cluster) {
  cluster.step();
  ASSERT_LT(identity_error(cluster, workload), 1e-5) << text_of(trial, step);
  ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << text_of(trial, step);
  const Engine& first = *cluster.replicas[0].engine;
  for (const ClusterReplica& replica : cluster.replicas) {
    ASSERT_EQ(digest_of(replica.engine->shared()), digest_of(first.shared()));
    ASSERT_EQ(replica.engine->parts(), first.parts());
  }
}

TEST(LocalSteps, MoveTheMeanOfTheReplicasByTheirMean) {
  std::mt19937_64 random(31);
  for (int number = 0; number < 60; ++number) {
    const Trial trial = draw_trial(random);
    QuadraticWorkload workload(kIdentityElements, random());
    Cluster cluster(trial.options, workload, {1, 2, 0.5});
    prepare(trial, cluster, random);
    const int steps = steps_of(trial.options.recipe.plan);
    for (int step = 0; step < steps; ++step) {
      if (trial.changes_plan && random() % 4 == 0) cluster.announce(draw_plan(random));
      ASSERT_NO_FATAL_FAILURE(expect_good_step(trial, step, workload, cluster));
    }
    ASSERT_NO_FATAL_FAILURE(expect_merges(trial, steps, cluster));
    ASSERT_NO_FATAL_FAILURE(expect_drained(cluster));
    ASSERT_LT(identity_error(cluster, workload), 1e-5) << text_of(trial, steps);
  }
}

Plan draw_short_plan(std::mt19937_64& random) {
  return {.keep_ratio = 0.02 + 0.01 * draw(random, 0, 98),
          .delay_steps = draw(random, 0, 6),
          .period_steps = draw(random, 1, 4),
          .merge = Merge::kLate};
}

// Every layer once in a period.
Plan draw_plan_by_layer(std::mt19937_64& random, std::size_t parts) {
  Plan plan = draw_short_plan(random);
  plan.schedule.resize(static_cast<std::size_t>(plan.period_steps));
  for (std::uint32_t part = 0; part + 1 < parts; ++part)
    plan.schedule[random() % plan.schedule.size()].push_back(part);
  plan.schedule.back().push_back(static_cast<std::uint32_t>(parts) - 1);
  return plan;
}

TEST(LocalSteps, MoveTheMeanAlsoWhereLayersBeginOrCeaseToTravelByThemselves) {
  std::mt19937_64 random(41);
  int swaps = 0;
  for (int number = 0; number < 12; ++number) {
    Trial trial = draw_trial(random);
    trial.options.recipe.may_go_by_layer = true;
    trial.options.clip = number % 2 == 0 ? 0.0 : 20.0;
    const std::size_t parts = part_times(trial.options).layers.size();
    if (number % 3 == 0) trial.options.recipe.plan = draw_plan_by_layer(random, parts);
    QuadraticWorkload workload(kIdentityElements, random());
    Cluster cluster(trial.options, workload, {1, 2, 0.5});
    prepare(trial, cluster, random);
    const Engine& engine = *cluster.replicas[0].engine;
    for (int step = 0; step < 100; ++step) {
      if (random() % 8 == 0)
        cluster.announce(random() % 2 == 0 ? draw_short_plan(random)
                                           : draw_plan_by_layer(random, parts));
      const std::size_t before = engine.parts();
      ASSERT_NO_FATAL_FAILURE(expect_good_step(trial, step, workload, cluster));
      ASSERT_EQ(engine.parts(), engine.plan().schedule.empty() ? 1 : parts);
      if (engine.parts() == before) continue;
      ++swaps;
      ASSERT_EQ(engine.rounds_in_flight(), 0U) << text_of(trial, step);
    }
    ASSERT_NO_FATAL_FAILURE(expect_drained(cluster));
  }
  EXPECT_GT(swaps, 25);
}

// Two-way: the mean of the replicas has not heard of what the mean of the last merged round held
// back.
void expect_two_way_identity(const EngineOptions& options, std::uint64_t seed) {
  const Plan& plan = options.recipe.plan;
  QuadraticWorkload workload(kIdentityElements, seed);
  Cluster cluster(options, workload, {1, 2, 0.5});
  std::vector<std::vector<float>> held_back;  // after each step
  const int steps = steps_of(plan);
  for (int step = 0; step < steps; ++step) {
    cluster.step();
    const std::span<const float> residual = cluster.residual_of_means();
    held_back.emplace_back(residual.begin(), residual.end());
    const std::size_t rounds = rounds_merged_after(step + 1, plan);
    ASSERT_EQ(cluster.replicas[0].exchange->rounds_merged(), rounds);
    const int last_merged = static_cast<int>(rounds) * plan.period_steps - 1;
    const Doubles stands = mean_over_replicas(cluster, [](const ClusterReplica& r, std::size_t j) {
      return static_cast<double>(r.learner->parameters()[j]);
    });
    const Doubles moved = mean_over_replicas(
        cluster, [](const ClusterReplica& r, std::size_t j) { return r.updates[j]; });
    for (std::size_t j = 0; j < stands.size(); ++j) {
      const double lacks =
          last_merged < 0
              ? 0.0
              : static_cast<double>(held_back[static_cast<std::size_t>(last_merged)][j]);
      ASSERT_NEAR(stands[j], 1.0 - moved[j] + lacks, 1e-5)
          << options.recipe.codec.name() << " step " << step;
    }
  }
}

TEST(LocalSteps, OfTwoWayRoundsLackWhatTheMeanHeldBack) {
  std::mt19937_64 random(32);
  constexpr std::array kCodecs{"top_k/bf16", "chunk_top_k/2bit", "low_rank/fp32", "sign"};
  for (int number = 0; number < 16; ++number) {
    EngineOptions options = local_options(
        kCodecs[static_cast<std::size_t>(number) % kCodecs.size()], draw_plan(random));
    options.recipe.is_two_way = true;
    options.layers = {{.name = "matrix", .offset = 0, .count = 600, .shape = {30, 20}},
                      {.name = "rest", .offset = 600, .count = 401}};
    ASSERT_NO_FATAL_FAILURE(expect_two_way_identity(options, random()));
  }
}

// Replicas and the mean draw the same elements, so the mean holds nothing back.
TEST(LocalSteps, OfTwoWayRoundsDrawTheSameByLot) {
  EngineOptions options = local_options("random_k/fp32", {.keep_ratio = 0.1, .period_steps = 2});
  options.recipe.is_two_way = true;
  options.seed = 7;
  QuadraticWorkload workload(kIdentityElements);
  Cluster cluster(options, workload, {1, 2, 0.5});
  for (int step = 0; step < 10; ++step) {
    cluster.step();
    for (const float held_back : cluster.residual_of_means()) ASSERT_NEAR(held_back, 0, 1e-7);
  }
  EXPECT_LT(workload.evaluate(cluster.replicas[0].engine->shared(), 1).loss, 0.999);
}

TEST(LocalSteps, TheIdentityNoticesAMessageThatIsLost) {
  QuadraticWorkload workload(kIdentityElements);
  Cluster cluster(
      local_options("top_k/bf16", {.keep_ratio = 0.1, .delay_steps = 6, .period_steps = 4}),
      workload, {1, 1, 1});
  cluster.replicas[1].returning->returns = [](RoundId round) { return round.step == 7; };
  cluster.replicas[1].returning->loses_them = true;
  for (int step = 0; step < 20; ++step) cluster.step();
  EXPECT_GT(identity_error(cluster, workload), 1e-5);
}

// The last step may end no period: what is left of it goes into the average as well.
TEST(FinalAverage, MakesTheSharedModelTheMeanOfTheReplicas) {
  for (const char* name : {"olco3-oc", "olco3-tc", "static"}) {
    SCOPED_TRACE(name);
    constexpr std::uint64_t kLast = 41;
    EngineOptions options{.recipe = find_recipe(name).value(),
                          .optimizer = {.kind = OptimizerKind::kMomentum},
                          .lr = {.peak = 0.02},
                          .final_average = kLast};
    QuadraticWorkload workload(kIdentityElements);
    Cluster cluster(options, workload, {1, 2, 0.5});
    for (std::uint64_t step = 0; step <= kLast; ++step) cluster.step();
    const Doubles moved = mean_over_replicas(
        cluster, [](const ClusterReplica& r, std::size_t j) { return r.updates[j]; });
    for (const ClusterReplica& replica : cluster.replicas) {
      ASSERT_TRUE(replica.engine->drain().ok());
      double off = 0;
      double all = 0;
      for (std::size_t j = 0; j < moved.size(); ++j) {
        const auto initial = static_cast<double>(workload.initial_parameters()[j]);
        const float shared = replica.engine->shared()[j];
        ASSERT_EQ(replica.learner->parameters()[j], shared);
        off += std::abs(static_cast<double>(shared) - (initial - moved[j]));
        all += std::abs(moved[j]);
      }
      EXPECT_LT(off / all, 1e-5);
    }
    options.final_average.reset();
    Cluster without(options, workload, {1, 2, 0.5});
    for (std::uint64_t step = 0; step <= kLast; ++step) without.step();
    for (const ClusterReplica& replica : without.replicas)
      ASSERT_TRUE(replica.engine->drain().ok());
    EXPECT_NE(digest_of(without.replicas[0].engine->shared()),
              digest_of(cluster.replicas[0].engine->shared()));
  }
}

}  // namespace
}  // namespace longhaul::testing
