// Layer schedules of models with up to a hundred layers and more.
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "longhaul/plan/layer_schedule.h"
#include "longhaul/round/plan.h"
#include "tests/plan/random_layers.h"

namespace longhaul {
namespace {

using namespace testing;

constexpr double kRounding = 1e-9;

// The layers of each step, in ascending order, with a round in the last.
void expect_legal(const LayerSchedule& schedule, std::size_t layers) {
  const Plan plan{.period_steps = static_cast<int>(schedule.steps.size()),
                  .merge = Merge::kLate,
                  .schedule = schedule.steps};
  const Status status = check_plan_limits(plan);
  EXPECT_TRUE(status.ok()) << status.error().message;
  std::set<std::uint32_t> averaged;
  for (const auto& set : schedule.steps) averaged.insert(set.begin(), set.end());
  EXPECT_EQ(averaged.size(), layers);
  EXPECT_LT(*averaged.rbegin(), layers);
}

TEST(LayerSchedule, IsNeverWorseThanTheOthersAndNeverBelowItsBound) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 200; ++i) {
    const std::size_t period = 1 + random() % 12;
    const LayerProfile profile = random_profile(random, 1 + random() % 100);
    const LayerLink link = random_link(random, profile, period);
    const auto planned = [&](LayerPolicy policy) {
      const LayerSchedule schedule = make_layer_schedule(profile, link, policy, period);
      expect_legal(schedule, profile.layers.size());
      EXPECT_GE(schedule.timeline.step_time, schedule.bound * (1 - kRounding));
      EXPECT_GE(schedule.timeline.hidden_share, 0);
      return schedule.timeline.step_time;
    };
    const Seconds scheduled = planned(LayerPolicy::kScheduled);
    EXPECT_LE(scheduled, planned(LayerPolicy::kContiguous) + Seconds(kRounding));
    EXPECT_LE(scheduled, planned(LayerPolicy::kEqualNumber) + Seconds(kRounding));
    EXPECT_LE(scheduled, planned(LayerPolicy::kAsReady) + Seconds(kRounding));
    EXPECT_LE(planned(LayerPolicy::kScheduledLate), scheduled + Seconds(kRounding));
    const LayerProfile whole = merged_layers(profile, group_layers(profile, 1));
    EXPECT_LE(scheduled,
              make_layer_schedule(whole, link, LayerPolicy::kWhole, period).timeline.step_time +
                  Seconds(kRounding));
  }
}

TEST(LayerSchedule, PlansFourHundredLayersInAMoment) {
  std::mt19937_64 random(15);
  const LayerProfile profile = random_profile(random, 400);
  const LayerLink link = random_link(random, profile, 20);
  const auto begin = std::chrono::steady_clock::now();
  const LayerSchedule schedule = make_layer_schedule(profile, link, LayerPolicy::kScheduled, 20);
  // 50 ms are asked for, and bench/plan_bench.cpp measures; this is for sanitizers on busy
  // machines.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  expect_legal(schedule, 400);
}

}  // namespace
}  // namespace longhaul
