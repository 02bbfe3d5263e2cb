// When `auto` sends layers by themselves, uncompressed, and when it compresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/plan/auto_planner.h"
#include "longhaul/plan/layer_planner.h"
#include "tests/plan/random_conditions.h"

namespace longhaul {
namespace {

using ::longhaul::testing::equal_links;
using ::longhaul::testing::kElements;
using ::longhaul::testing::sizes_of_four;
using ::testing::HasSubstr;

constexpr double kAgree = 0.5;

// Sixteen equal layers, a third of whose time is forward.
LayerProfile even_layers() {
  LayerProfile profile;
  for (int i = 0; i < 16; ++i)
    profile.layers.push_back({.name = std::to_string(i),
                              .forward = Seconds(1),
                              .backward = Seconds(2),
                              .bytes = 4.0 * kElements / 16});
  return profile;
}

PlannerOptions with_layers() { return {.kind = PlannerKind::kAuto, .parts = even_layers()}; }

TEST(AutoLayers, TravelUncompressedWhereComputingHidesThem) {
  const Decision decision = AutoPlanner(sizes_of_four(), with_layers()).best(equal_links(20, 0.02));
  ASSERT_FALSE(decision.plan.schedule.empty());
  EXPECT_EQ(decision.plan.keep_ratio, 1);
  EXPECT_EQ(decision.plan.merge, Merge::kLate);
  EXPECT_EQ(decision.plan.schedule.size(), static_cast<std::size_t>(decision.plan.period_steps));
  EXPECT_LT(decision.step_time.count(), 0.103);
  EXPECT_THAT(decision.reason, HasSubstr("send each layer by itself"));
  EXPECT_THAT(decision.reason, HasSubstr("uncompressed: the least predicted time to the target"));
  EXPECT_THAT(decision.reason, HasSubstr("of the communication is hidden"));
  EXPECT_THAT(decision.reason, HasSubstr("times as long"));
}

TEST(AutoLayers, AreCompressedWhereALinkIsSlow) {
  const Decision decision = AutoPlanner(sizes_of_four(), with_layers()).best(equal_links(0.05, 2));
  EXPECT_TRUE(decision.plan.schedule.empty());
  EXPECT_LT(decision.plan.keep_ratio, 0.1);
  EXPECT_THAT(decision.reason, HasSubstr("; to send each layer by itself"));
}

// The better of the two searches; without layers the plan is the one of the whole model.
TEST(AutoLayers, TravelWhereThatIsPredictedToBeFaster) {
  const AutoPlanner planner(sizes_of_four(), with_layers());
  const AutoPlanner whole_only(sizes_of_four(), {.kind = PlannerKind::kAuto});
  std::mt19937_64 random(5);
  int by_layer = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const bool is_near = trial % 2 == 0;
    Conditions replicas =
        testing::random_conditions(random, 4, 4.0 * kElements * (is_near ? 40 : 1));
    for (ReplicaConditions& replica : replicas) replica.latency *= is_near ? 0.02 : 1;
    const Decision decision = planner.best(replicas);
    const Decision whole = whole_only.best(replicas);
    const Decision layers = *planner.best_by_layer(replicas);
    EXPECT_FALSE(whole_only.best_by_layer(replicas));
    EXPECT_EQ(decision.time().count(), std::min(whole.time(), layers.time()).count());
    EXPECT_EQ(decision.plan, layers.time() < whole.time() ? layers.plan : whole.plan);
    if (!decision.plan.schedule.empty()) ++by_layer;
    const LayerTimeline timeline =
        timeline_of(layers.plan, {.parts = even_layers()}, replicas, sizes_of_four());
    EXPECT_EQ(layers.step_time.count(), timeline.step_time.count());
  }
  EXPECT_GT(by_layer, 5);
  EXPECT_LT(by_layer, 55);
}

TEST(AutoLayers, CostTheirRoundsToo) {
  Conditions replicas = equal_links(20, 0.02);
  const AutoPlanner planner(sizes_of_four(), with_layers());
  const Decision before = *planner.best_by_layer(replicas);
  for (ReplicaConditions& replica : replicas) replica.round_work = Seconds(0.02);
  Decision after = *planner.best_by_layer(replicas);
  EXPECT_GT(after.step_time - before.step_time, Seconds(0.02 / kMostAutoPeriod));
  for (ReplicaConditions& replica : replicas) replica.round_wait = Seconds(0.2);
  EXPECT_GT(planner.best_by_layer(replicas)->time(), after.time());
}

struct Course {
  Plan plan;
  int changes = 0;
};

// The plan after so many rounds on these links.
Course go_on(AutoPlanner& planner, Plan plan, const Conditions& replicas, int rounds,
             double agreement = kAgree) {
  Course course{.plan = std::move(plan)};
  for (int round = 0; round < rounds; ++round) {
    const auto decision = planner.round_closed(
        {.replicas = replicas, .agreement = agreement, .current = course.plan});
    if (!decision) continue;
    course.plan = decision->plan;
    ++course.changes;
  }
  return course;
}

TEST(AutoLayers, GoAndComeAsTheLinkChanges) {
  AutoPlanner planner(sizes_of_four(), with_layers());
  Course course{.plan = planner.first(equal_links(20, 0.02)).plan};
  ASSERT_FALSE(course.plan.schedule.empty());
  course = go_on(planner, course.plan, equal_links(20, 0.02), 300);
  EXPECT_EQ(course.changes, 0);
  course = go_on(planner, course.plan, equal_links(0.05, 2), 400);
  EXPECT_TRUE(course.plan.schedule.empty());
  EXPECT_LT(course.plan.keep_ratio, 0.1);
}

// Links on which both are about as good.
TEST(AutoLayers, StayWhereTheyAreIfTheGainIsSmall) {
  for (const double alpha : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    AutoPlanner planner(sizes_of_four(), with_layers());
    Plan plan = planner.first(equal_links(alpha, 0.1)).plan;
    int swaps = 0;
    for (int round = 0; round < 600; ++round) {
      const double now = alpha * (round % 20 < 10 ? 0.9 : 1.1);
      const Course course = go_on(planner, plan, equal_links(now, 0.1), 1);
      if (course.plan.schedule.empty() != plan.schedule.empty()) ++swaps;
      plan = course.plan;
    }
    EXPECT_LE(swaps, 1) << alpha;
  }
}

TEST(AutoLayers, TravelTogetherAgainWhereReplicasDisagree) {
  AutoPlanner planner(sizes_of_four(), with_layers());
  const Plan plan = planner.first(equal_links(20, 0.02)).plan;
  ASSERT_FALSE(plan.schedule.empty());
  const Course course = go_on(planner, plan, equal_links(20, 0.02), 3000, -0.2);
  EXPECT_EQ(course.plan.merge, Merge::kAhead);
  EXPECT_TRUE(course.plan.schedule.empty());
  EXPECT_FALSE(planner.best_by_layer(equal_links(20, 0.02)));
}

// As after a restart with a scenario that does not know the layers any more.
TEST(AutoLayers, ThatAreNotKnownAreLeft) {
  const Plan plan = AutoPlanner(sizes_of_four(), with_layers()).first(equal_links(20, 0.02)).plan;
  AutoPlanner planner(sizes_of_four(), {.kind = PlannerKind::kAuto});
  const auto decision = planner.round_closed(
      {.replicas = equal_links(20, 0.02), .agreement = kAgree, .current = plan});
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->plan.schedule.empty());
}

TEST(AutoLayers, AreFrozenWithTheFirstPlan) {
  PlannerOptions options = with_layers();
  options.kind = PlannerKind::kFrozen;
  AutoPlanner planner(sizes_of_four(), options);
  const Plan plan = planner.first(equal_links(20, 0.02)).plan;
  ASSERT_FALSE(plan.schedule.empty());
  EXPECT_EQ(go_on(planner, plan, equal_links(0.01, 2), 50).changes, 0);
}

}  // namespace
}  // namespace longhaul
