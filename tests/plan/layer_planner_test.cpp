// The planner of layers: the published example through it, by one line and by two.
#include "longhaul/plan/layer_planner.h"

#include <gtest/gtest.h>

#include "tests/plan/random_layers.h"

namespace longhaul {
namespace {

constexpr std::size_t kPlannedElements =
    9'000'000;  // so that the header of a payload does not count
constexpr double kHeaderShare = 1e-4;

Decision planned(bool is_one_way) {
  const LayerProfile profile = testing::pinning_profile();
  const LayerLink link = testing::pinning_link(is_one_way);
  PlannerOptions options{.kind = PlannerKind::kLayers,
                         .plan = {.period_steps = 2, .merge = Merge::kLate},
                         .parts = profile,
                         .policy = LayerPolicy::kScheduled,
                         .is_one_way = is_one_way};
  const RoundSizes sizes(parse_codec("dense/fp32").value(), kPlannedElements, 2, {},
                         WayDown::kForwarded);
  const ReplicaConditions replica{.compute = profile.forward() + profile.backward(),
                                  .latency = link.latency,
                                  .up = link.up,
                                  .down = link.down};
  return make_planner(options, sizes)->first({replica, replica});
}

TEST(LayerPlanner, PlansForOneLineWhereAnAllReduceCrossesIt) {
  const Decision decision = planned(true);
  EXPECT_NEAR(decision.step_time.count(), 28.5, 28.5 * kHeaderShare);
  EXPECT_EQ(decision.plan.delay_steps, 0);
  EXPECT_EQ(decision.plan.schedule.size(), 2U);
}

TEST(LayerPlanner, PlansForTwoLinesOtherwise) {
  EXPECT_NEAR(planned(false).step_time.count(), 35, 35 * kHeaderShare);
}

}  // namespace
}  // namespace longhaul
