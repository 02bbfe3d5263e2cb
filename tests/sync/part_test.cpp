// The model in parts, which have rounds of their own.
#include "longhaul/sync/part.h"

#include <gtest/gtest.h>

#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

LayerTable table_of(std::initializer_list<std::size_t> counts) {
  LayerTable layers;
  std::size_t offset = 0;
  for (const std::size_t count : counts) {
    layers.push_back({.name = "layer",
                      .offset = offset,
                      .count = count,
                      .shape = {static_cast<std::int64_t>(count), 1}});
    offset += count;
  }
  return layers;
}

std::vector<std::size_t> counts_of(const std::vector<Part>& parts) {
  std::vector<std::size_t> counts;
  for (const Part& part : parts) counts.push_back(part.count);
  return counts;
}

using Counts = std::vector<std::size_t>;

TEST(Parts, AreCutBetweenLayersWhereThatIsNear) {
  EXPECT_EQ(counts_of(split_into_parts(table_of({30, 30, 50, 10}), 120, 2)), (Counts{60, 60}));
  EXPECT_EQ(counts_of(split_into_parts(table_of({20, 50, 50}), 120, 2)), (Counts{70, 50}));
}

TEST(Parts, AreOfEvenSizeWhereLayersAreTooLarge) {
  EXPECT_EQ(counts_of(split_into_parts(table_of({100}), 100, 4)), (Counts{25, 25, 25, 25}));
  EXPECT_EQ(counts_of(split_into_parts({}, 10, 3)), (Counts{3, 3, 4}));
  EXPECT_EQ(counts_of(split_into_parts({}, 3, 3)), (Counts{1, 1, 1}));
}

TEST(Parts, CoverTheModelWithoutGapForAnyTable) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    LayerTable layers;
    std::size_t elements = 0;
    for (std::uint64_t i = random() % 6; i > 0; --i) {
      layers.push_back({.offset = elements, .count = 1 + random() % 50});
      elements += layers.back().count;
    }
    elements += 1 + random() % 20;
    const std::size_t count = 1 + random() % std::min<std::size_t>(elements, 8);
    const std::vector<Part> parts = split_into_parts(layers, elements, count);
    ASSERT_EQ(parts.size(), count);
    std::size_t first = 0;
    for (const Part& part : parts) {
      ASSERT_EQ(part.first, first);
      ASSERT_GT(part.count, 0U);
      first += part.count;
    }
    ASSERT_EQ(first, elements);
  }
}

TEST(Parts, HaveTheirLayersFromTheirOwnStart) {
  const LayerTable own = layers_of({.first = 10, .count = 30}, table_of({10, 20, 40}));
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[0].offset, 0U);
  EXPECT_EQ(own[0].shape.size(), 2U);
  EXPECT_EQ(own[1].offset, 20U);
  EXPECT_EQ(own[1].count, 10U);
  EXPECT_TRUE(own[1].shape.empty()) << "cut through";
}

// Rounds of three fragments lie apart, and what the late correction promises holds for each.
TEST(Fragments, HaveTheirRoundsSpreadOverThePeriod) {
  EngineOptions options =
      setup_of(Merge::kLate, "dense/fp32", {.delay_steps = 2, .period_steps = 6});
  options.recipe.local.fragments = 3;
  QuadraticWorkload workload(90);
  Cluster cluster(options, workload, {1, 1});
  std::vector<std::size_t> rounds;
  for (std::size_t step = 0; step < 12; ++step) {
    if (cluster.replicas[0].engine->next_round() == step) rounds.push_back(step);
    cluster.step();
  }
  EXPECT_EQ(rounds, (std::vector<std::size_t>{1, 3, 5, 7, 9, 11}));
}

TEST(Fragments, ShareStepsWhereThereAreMoreOfThemThanThePeriodHas) {
  EngineOptions options = setup_of(Merge::kLate, "top_k/bf16",
                                   {.keep_ratio = 0.1, .delay_steps = 3, .period_steps = 2});
  options.recipe.local.fragments = 3;
  QuadraticWorkload workload(90);
  Cluster cluster(options, workload, {1, 1});
  for (std::size_t step = 0; step < 20; ++step) {
    const std::vector<RoundId> even{{.step = step, .part = 0}, {.step = step, .part = 1}};
    const std::vector<RoundId> odd{{.step = step, .part = 2}};
    EXPECT_EQ(cluster.replicas[0].engine->next_rounds(), step % 2 == 0 ? even : odd);
    cluster.step();
    ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << step;
  }
}

// Those of replica 0 in each of the next steps.
std::vector<std::vector<std::uint32_t>> parts_of_steps(Cluster& cluster, std::size_t steps) {
  std::vector<std::vector<std::uint32_t>> parts(steps);
  for (std::vector<std::uint32_t>& of_step : parts) {
    const Engine& engine = *cluster.replicas[0].engine;
    for (const RoundId& round : engine.next_rounds()) {
      if (round.step == engine.steps_done()) of_step.push_back(round.part);
    }
    cluster.step();
  }
  return parts;
}

using PartsBySteps = std::vector<std::vector<std::uint32_t>>;

EngineOptions scheduled_options(int delay_steps) {
  EngineOptions options = setup_of(Merge::kLate, "top_k/bf16",
                                   {.keep_ratio = 0.1,
                                    .delay_steps = delay_steps,
                                    .period_steps = 3,
                                    .schedule = {{2}, {}, {0, 1, 2}}});
  options.recipe.local.fragments = 3;
  return options;
}

TEST(Schedule, IsWhenThePartsHaveTheirRounds) {
  QuadraticWorkload workload(90);
  Cluster cluster(scheduled_options(4), workload, {1, 1});
  EXPECT_EQ(parts_of_steps(cluster, 6), (PartsBySteps{{2}, {}, {0, 1, 2}, {2}, {}, {0, 1, 2}}));
  EXPECT_LT(imbalance(account_of(cluster)), 1e-5);
}

TEST(Schedule, OfANewPlanBeginsWithTheNextPeriod) {
  QuadraticWorkload workload(90);
  Cluster cluster(scheduled_options(0), workload, {1, 1});
  Plan next = scheduled_options(0).recipe.plan;
  next.period_steps = 2;
  next.schedule = {{1}, {0, 2}};
  cluster.announce(next);  // with the round of step 0
  EXPECT_EQ(parts_of_steps(cluster, 6), (PartsBySteps{{2}, {}, {0, 1, 2}, {1}, {0, 2}, {1}}));
  next.schedule.clear();
  cluster.announce(next);  // with that of step 6, the last of its period
  EXPECT_EQ(parts_of_steps(cluster, 4), (PartsBySteps{{0, 2}, {0, 1}, {2}, {0, 1}}));
  EXPECT_LT(imbalance(account_of(cluster)), 1e-5);
}

TEST(Schedule, IsRefusedWhereItDoesNotFitTheModel) {
  const EngineOptions options = scheduled_options(0);
  const auto refusal = [](const EngineOptions& of, PartsBySteps schedule) {
    Plan plan = of.recipe.plan;
    plan.schedule = std::move(schedule);
    const Status status = check_plan(plan, of);
    return status.ok() ? "accepted" : status.error().message;
  };
  EXPECT_EQ(refusal(options, {{2}, {}, {0, 1}}), "accepted");
  EXPECT_EQ(refusal(options, {{3}, {2}, {0, 1}}), "schedule: part 3 of a model in 3 parts");
  EXPECT_EQ(refusal(options, {{}, {2}, {0}}), "schedule: no round of part 1");
  EngineOptions one_part = options;
  one_part.recipe.local.fragments = 1;
  EXPECT_EQ(refusal(one_part, {{}, {}, {0}}), "schedule: the model is one part");
  EngineOptions anchored = options;
  anchored.recipe.plan.merge = Merge::kAnchor;
  EXPECT_EQ(refusal(anchored, {{}, {2}, {0, 1}}),
            "merge rule anchor merges a model in one part, and it has 3");
}

// A recipe that may go by layer, and a plan with a round of every part in the last step.
struct LayersOrWhole {
  EngineOptions options = setup_of(Merge::kLate, "top_k/bf16",
                                   {.keep_ratio = 0.1, .delay_steps = 3, .period_steps = 2});
  Plan by_layer{.period_steps = 2, .merge = Merge::kLate, .schedule = {{}, {}}};

  LayersOrWhole() {
    options.recipe.may_go_by_layer = true;
    options.layers = QuadraticWorkload(90).layers();
    for (std::uint32_t part = 0; part < part_times(options).layers.size(); ++part)
      by_layer.schedule.back().push_back(part);
  }
};

TEST(PartsOfAPlan, ChangeWhereAPeriodEndsWithNothingOnItsWay) {
  const LayersOrWhole setup;
  QuadraticWorkload workload(90);
  Cluster cluster(setup.options, workload, {1, 1});
  const Engine& engine = *cluster.replicas[0].engine;
  cluster.announce(setup.by_layer);  // with the round of step 1, which is merged in step 4
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(engine.parts(), 1U);
    EXPECT_EQ(engine.plan(), setup.options.recipe.plan);
    EXPECT_EQ(engine.announced(), step < 5 ? engine.plan() : setup.by_layer);
    cluster.step();
  }
  EXPECT_EQ(engine.parts(), setup.by_layer.schedule.back().size());
  EXPECT_EQ(engine.plan(), setup.by_layer);
  EXPECT_EQ(engine.rounds_in_flight(), 0U);
  EXPECT_LT(imbalance(account_of(cluster)), 1e-5);
  Plan whole{.keep_ratio = 0.5, .merge = Merge::kAhead};
  cluster.announce(whole);  // with the first round of step 7, in which all is merged
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(engine.plan(), setup.by_layer);
    cluster.step();
  }
  EXPECT_EQ(engine.parts(), 1U);
  EXPECT_EQ(engine.plan(), whole) << "the rule too, once the model is one part";
}

TEST(PartsOfAPlan, StayIfThePlanIsTakenBackBeforeTheyChange) {
  const LayersOrWhole setup;
  QuadraticWorkload workload(90);
  Cluster cluster(setup.options, workload, {1, 1});
  const Engine& engine = *cluster.replicas[0].engine;
  cluster.announce(setup.by_layer);
  for (int step = 0; step < 5; ++step) cluster.step();
  EXPECT_EQ(engine.announced(), setup.by_layer);
  Plan other = setup.options.recipe.plan;
  other.keep_ratio = 0.3;
  cluster.announce(other);  // with the round of step 5, which is merged at once
  for (int step = 0; step < 6; ++step) {
    cluster.step();
    EXPECT_EQ(engine.parts(), 1U);
  }
  EXPECT_EQ(engine.plan(), other);
}

TEST(PartsOfAPlan, AreRefusedWhereTheyDoNotFit) {
  const LayersOrWhole setup;
  Plan plan = setup.by_layer;
  EXPECT_TRUE(check_plan(plan, setup.options).ok());
  EngineOptions never = setup.options;
  never.recipe.may_go_by_layer = false;
  EXPECT_EQ(check_plan(plan, never).error().message, "schedule: the model is one part");
  plan.schedule.back().pop_back();
  EXPECT_FALSE(check_plan(plan, setup.options).ok());
  plan = {.merge = Merge::kAhead, .schedule = {setup.by_layer.schedule.back()}};
  EXPECT_FALSE(check_plan(plan, setup.options).ok()) << "look-ahead is of a model in one part";
}

TEST(Fragments, MoveTheMeanOfTheReplicasByTheMeanOfTheirSteps) {
  EngineOptions options = setup_of(Merge::kLate, "top_k/bf16",
                                   {.keep_ratio = 0.1, .delay_steps = 7, .period_steps = 6});
  options.recipe.local.fragments = 4;
  QuadraticWorkload workload(1000);
  Cluster cluster(options, workload, {1, 1});
  for (int step = 0; step < 50; ++step) {
    cluster.step();
    ASSERT_LT(imbalance(account_of(cluster)), 1e-5) << step;
  }
  // Fragments end their periods in steps 0, 2, 3 and 5, and every six steps after that.
  EXPECT_EQ(cluster.replicas[0].exchange->rounds_merged(), 8U + 7U + 7U + 7U);
  for (std::size_t j = 0; j < 1000; ++j) {
    const ClusterReplica& a = cluster.replicas[0];
    const ClusterReplica& b = cluster.replicas[1];
    ASSERT_NEAR(0.5 * (a.learner->parameters()[j] + b.learner->parameters()[j]),
                1.0 - 0.5 * (a.updates[j] + b.updates[j]), 1e-5);
  }
}

}  // namespace
}  // namespace longhaul::testing
