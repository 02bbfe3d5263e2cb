#include "longhaul/plan/round_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "longhaul/plan/auto_planner.h"
#include "longhaul/plan/step_time.h"
#include "tests/plan/random_conditions.h"

namespace longhaul {
namespace {

using ::longhaul::testing::kTopBf16;
using ::longhaul::testing::uniform_in;

constexpr std::size_t kFewElements = 7850;
constexpr RoundSize kSize{.up = 31'400, .down = 31'400};

// A machine with hub and replicas on it: what a round costs there is known.
struct Machine {
  Seconds wait{0.0003};
  Seconds work{0.0008};

  [[nodiscard]] static Conditions links() {
    const Bandwidth rate{.bytes_per_second = 4e8};
    return Conditions(
        2, {.compute = Seconds(0.00025), .latency = Seconds(0.00005), .up = rate, .down = rate});
  }
  // By the formula as it is written down.
  [[nodiscard]] Seconds step(const Plan& plan, const RoundSize& size = kSize) const {
    const ReplicaConditions link = links().front();
    const Loop loop(plan.delay_steps, plan.period_steps);
    const double bytes = size.up + size.down;
    const double length = loop.computed * link.compute.count() + 2 * link.latency.count() +
                          bytes / link.up.bytes_per_second + wait.count();
    return Seconds(
        std::max(link.compute.count() + work.count() / plan.period_steps, length / loop.steps));
  }
};

// So many seconds of steps that take so long under a plan.
struct TimedRun {
  void go_on(const Plan& plan, Seconds step_time, Seconds seconds,
             const Conditions& links = Machine::links()) {
    const auto period = static_cast<std::uint64_t>(plan.period_steps);
    for (const Seconds until = time + seconds; time < until;) {
      step += period;
      time += static_cast<double>(period) * step_time;
      cost.add(step, time, plan, kSize, links);
    }
  }
  [[nodiscard]] Seconds predicted(const Plan& plan) const {
    return longhaul::step_time(cost.set_in(Machine::links()), kSize, plan.delay_steps,
                               plan.period_steps);
  }

  RoundCost cost;
  std::uint64_t step = 0;
  Seconds time{};
};

const Plan kOverlapping{.keep_ratio = 1, .delay_steps = 3, .merge = Merge::kLate};
const Plan kOneByOne{.keep_ratio = 1, .delay_steps = 1, .period_steps = 8, .merge = Merge::kLate};

TEST(RoundCost, IsNothingBeforeAnythingIsKnown) {
  const RoundCost cost;
  EXPECT_EQ(cost.work(), Seconds(0));
  EXPECT_EQ(cost.wait(), Seconds(0));
  EXPECT_EQ(cost.step_time(), Seconds(0));
}

// Rounds of parts, whose way is hidden in part: what is left is no cost of a round.
TEST(RoundCost, OfPartsIsNotLearnt) {
  TimedRun run;
  const Plan by_layer{.merge = Merge::kLate, .schedule = {{0, 1, 2}}};
  run.go_on(by_layer, Seconds(0.01), Seconds(10));
  EXPECT_NEAR(run.cost.step_time().count(), 0.01, 1e-9);
  EXPECT_EQ(run.cost.work(), Seconds(0));
  EXPECT_EQ(run.cost.wait(), Seconds(0));
  run.go_on(kOverlapping, Machine{}.step(kOverlapping), Seconds(10));
  EXPECT_GT(run.cost.work(), Seconds(0));
}

TEST(RoundCost, MakesThePredictionTrue) {
  for (const Plan& plan : {kOverlapping, kOneByOne, Plan{.delay_steps = 0}}) {
    TimedRun run;
    const Seconds step = Machine{}.step(plan);
    ASSERT_LT(run.predicted(plan), 0.85 * step);
    run.go_on(plan, step, Seconds(3));
    EXPECT_NEAR(run.predicted(plan) / step, 1, 1e-6);
    EXPECT_NEAR(run.cost.step_time() / step, 1, 1e-6);
  }
}

TEST(RoundCost, IsWorkWhereRoundsOverlapAndWaitWhereTheyDoNot) {
  TimedRun overlapping;
  overlapping.go_on(kOverlapping, Machine{}.step(kOverlapping), Seconds(3));
  EXPECT_NEAR(overlapping.cost.work().count(), 0.0008, 1e-6);
  EXPECT_EQ(overlapping.cost.wait(), Seconds(0));
  TimedRun one_by_one;
  one_by_one.go_on(kOneByOne, Machine{.work = Seconds(0)}.step(kOneByOne), Seconds(3));
  EXPECT_EQ(one_by_one.cost.work(), Seconds(0));
  EXPECT_NEAR(one_by_one.cost.wait().count(), 0.0003, 1e-6);
}

// Else a planner would go back to it, and away again.
TEST(RoundCost, RemembersWhatAPlanHasShownUnderTheNext) {
  TimedRun run;
  run.go_on(kOverlapping, Machine{}.step(kOverlapping), Seconds(3));
  run.go_on(kOneByOne, Machine{}.step(kOneByOne), Seconds(10));
  EXPECT_GT(run.predicted(kOverlapping), 0.9 * Machine{}.step(kOverlapping));
  EXPECT_NEAR(run.predicted(kOneByOne) / Machine{}.step(kOneByOne), 1, 1e-6);
}

TEST(RoundCost, FallsWithTheLoadOfAMachine) {
  TimedRun run;
  run.go_on(kOneByOne, Seconds(0.002), Seconds(3));
  ASSERT_NEAR(run.predicted(kOneByOne).count(), 0.002, 1e-6);
  const Seconds step = Machine{}.step(kOneByOne);
  run.go_on(kOneByOne, step, Seconds(10));
  EXPECT_NEAR(run.predicted(kOneByOne) / step, 1, 1e-6);
}

TEST(RoundCost, IsNotThatOfOneStall) {
  TimedRun run;
  run.go_on(kOverlapping, Machine{}.step(kOverlapping), Seconds(6));
  const Seconds work = run.cost.work();
  run.time += Seconds(4);
  run.go_on(kOverlapping, Machine{}.step(kOverlapping), Seconds(6));
  EXPECT_NEAR(run.cost.work() / work, 1, 1e-6);
}

TEST(RoundCost, IsNothingWhereTheLinksExplainASteps) {
  Conditions slow = Machine::links();
  for (ReplicaConditions& link : slow) link.latency = Seconds(0.1);
  TimedRun run;
  run.go_on(kOneByOne, longhaul::step_time(slow, kSize, 1, 8), Seconds(10), slow);
  EXPECT_NEAR(run.cost.wait().count(), 0, 1e-9);
  EXPECT_EQ(run.cost.work(), Seconds(0));
}

// A minute of a closed loop on a machine where nothing is seen exactly: what `auto` must bear on
// loopback.
TEST(RoundCost, LetsAutoSettleWhereARoundCostsMoreThanAStep) {
  const Machine machine;
  const RoundSizes sizes(kTopBf16, kFewElements, 2);
  AutoPlanner planner(sizes, {});
  std::mt19937_64 random(11);
  Plan plan = planner.first(Machine::links()).plan;
  ASSERT_EQ(plan.period_steps, 1);
  TimedRun run;
  int changes = 0;
  while (run.time < Seconds(60)) {
    Conditions seen = Machine::links();
    for (ReplicaConditions& link : seen) {
      link.compute *= uniform_in(random, 0.85, 1.15);
      link.up.bytes_per_second *= uniform_in(random, 0.5, 1.5);
      link.down.bytes_per_second *= uniform_in(random, 0.5, 1.5);
    }
    const RoundSize size = sizes.at(plan.keep_ratio);
    run.step += static_cast<std::uint64_t>(plan.period_steps);
    run.time += plan.period_steps * machine.step(plan, size) * uniform_in(random, 0.2, 1.8);
    run.cost.add(run.step, run.time, plan, size, seen);
    const std::optional<Decision> decision =
        planner.round_closed({.replicas = run.cost.set_in(seen),
                              .agreement = uniform_in(random, -0.15, 0.25),
                              .current = plan});
    if (!decision) continue;
    plan = decision->plan;
    ++changes;
  }
  EXPECT_GE(changes, 1);
  EXPECT_LE(changes, 5);
  EXPECT_GT(plan.period_steps, 1);
  EXPECT_LT(machine.step(plan).count(), 0.6 * machine.step(kOverlapping).count());
  const Conditions known = run.cost.set_in(Machine::links());
  const RoundSize size = sizes.at(plan.keep_ratio);
  EXPECT_NEAR(
      step_time(known, size, plan.delay_steps, plan.period_steps) / machine.step(plan, size), 1,
      0.15);
}

}  // namespace
}  // namespace longhaul
