#include "longhaul/plan/layer_schedule.h"

#include <gmock/gmock.h>

#include <functional>

#include "longhaul/plan/layer_search.h"
#include "longhaul/round/plan.h"
#include "tests/plan/random_layers.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

constexpr double kRounding = 1e-9;

double planned(LayerPolicy policy, bool is_one_way, std::size_t period = 2) {
  LayerProfile profile = pinning_profile();
  if (policy == LayerPolicy::kWhole) profile = merged_layers(profile, group_layers(profile, 1));
  return make_layer_schedule(profile, pinning_link(is_one_way), policy, period)
      .timeline.step_time.count();
}

TEST(LayerSchedule, TakesTheTimesOfThePinningExample) {
  EXPECT_DOUBLE_EQ(planned(LayerPolicy::kWhole, true), 42);
  EXPECT_DOUBLE_EQ(planned(LayerPolicy::kEqualNumber, true), 32.5);
  EXPECT_DOUBLE_EQ(planned(LayerPolicy::kContiguous, true), 30);
  EXPECT_DOUBLE_EQ(planned(LayerPolicy::kScheduled, true), 28.5);
  EXPECT_DOUBLE_EQ(planned(LayerPolicy::kScheduled, false), 35);
}

// The sum of the least exposed times over all ways to give layers to steps.
Seconds brute_force(const LayerCosts& costs, std::size_t period, bool is_contiguous) {
  const std::size_t layers = costs.layers().size();
  LayerSteps steps(period);
  Seconds best{std::numeric_limits<double>::infinity()};
  const std::function<void(std::uint32_t, std::size_t)> place = [&](std::uint32_t layer,
                                                                    std::size_t first) {
    if (layer == layers) {
      best = std::min(best, exposed_of(costs, steps));
      return;
    }
    for (std::size_t step = is_contiguous ? first : 0; step < period; ++step) {
      steps[step].push_back(layer);
      place(layer + 1, step);
      steps[step].pop_back();
    }
  };
  place(0, 0);
  return best;
}

TEST(LayerSearch, ConsecutiveSetsAreThoseOfBruteForce) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t period = 1 + random() % 4;
    const LayerProfile profile = random_profile(random, 1 + random() % 8);
    const LayerCosts costs(profile, random_link(random, profile, period));
    const Seconds exposed = exposed_of(costs, contiguous_sets(costs, period));
    EXPECT_NEAR(exposed.count(), brute_force(costs, period, true).count(), kRounding) << i;
  }
}

TEST(LayerSearch, AllSetsAreThoseOfBruteForce) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t period = 1 + random() % 3;
    const LayerProfile profile = random_profile(random, 1 + random() % 7);
    const LayerCosts costs(profile, random_link(random, profile, period));
    const Seconds exposed = exposed_of(costs, best_sets(costs, period));
    EXPECT_NEAR(exposed.count(), brute_force(costs, period, false).count(), kRounding) << i;
  }
}

TEST(LayerSchedule, FillingCostsBytesAndNoTime) {
  std::mt19937_64 random(14);
  double more = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t period = 2 + random() % 6;
    const LayerProfile profile = random_profile(random, 2 + random() % 20);
    const LayerLink link = random_link(random, profile, period);
    const LayerCosts costs(profile, link);
    const LayerSteps sets = best_sets(costs, period);
    const LayerTimeline full =
        layer_timeline(profile, link, filled(costs, sets, kMostScheduledRounds));
    EXPECT_NEAR(full.exposed.count(), exposed_of(costs, sets).count(), kRounding);
    EXPECT_GE(full.bytes, profile.bytes() * (1 - kRounding));
    more += full.bytes / profile.bytes() - 1;
  }
  EXPECT_GT(more, 10);  // a tenth of the model and more, on average
}

TEST(LayerSchedule, FillingStopsAtItsLimit) {
  const LayerCosts costs(pinning_profile(), {.up = {1e12}, .down = {1e12}});
  std::size_t rounds = 0;
  for (const auto& set : filled(costs, contiguous_sets(costs, 4), 7)) rounds += set.size();
  EXPECT_EQ(rounds, 7U);
}

TEST(LayerSchedule, OnAFastLinkEveryStepAveragesEverything) {
  const LayerSchedule schedule = make_layer_schedule(
      pinning_profile(), {.up = {1e12}, .down = {1e12}}, LayerPolicy::kScheduled);
  EXPECT_EQ(schedule.steps.size(), 1U);
  EXPECT_NEAR(schedule.timeline.step_time.count(), 24, 1e-4);
}

TEST(LayerSchedule, ThePeriodFollowsTheLink) {
  std::size_t last = 1;
  for (const double slower : {1.0, 2.0, 4.0, 8.0}) {
    LayerProfile profile;
    for (int i = 0; i < 24; ++i)
      profile.layers.push_back({.name = std::to_string(i),
                                .forward = Seconds(1),
                                .backward = Seconds(2),
                                .bytes = 3 * slower});
    const LayerSchedule schedule =
        make_layer_schedule(profile, {.up = {1}, .down = {1}}, LayerPolicy::kScheduled);
    EXPECT_GE(schedule.steps.size(), static_cast<std::size_t>(slower));  // the line's share
    EXPECT_LE(schedule.steps.size(), static_cast<std::size_t>(3 * slower));
    EXPECT_GE(schedule.steps.size(), last);
    EXPECT_THAT(schedule.reason, HasSubstr("hidden"));
    last = schedule.steps.size();
  }
}

TEST(LayerSchedule, OnlyLayersThatCannotHideMergeLate) {
  // The round trip of the input side is longer than what is computed until it is needed.
  LayerProfile profile;
  for (int i = 0; i < 4; ++i)
    profile.layers.push_back(
        {.name = std::to_string(i), .forward = Seconds(1), .backward = Seconds(2), .bytes = 1});
  const LayerLink link{.up = {4}, .down = {4}, .latency = Seconds(2)};
  const LayerSchedule schedule = make_layer_schedule(profile, link, LayerPolicy::kScheduledLate, 2);
  EXPECT_EQ(schedule.timeline.step_time, Seconds(12));
  EXPECT_THAT(schedule.delays, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(schedule.longest_delay(), 1);
  EXPECT_GT(make_layer_schedule(profile, link, LayerPolicy::kScheduled, 2).timeline.step_time,
            Seconds(13));
}

TEST(LayerSchedule, GroupsSmallNeighbours) {
  LayerProfile profile;
  for (const double bytes : {1.0, 1.0, 50.0, 1.0, 40.0, 6.0, 1.0})
    profile.layers.push_back({.name = std::to_string(profile.layers.size()),
                              .forward = Seconds(1),
                              .backward = Seconds(2),
                              .bytes = bytes});
  const std::vector<std::uint32_t> groups = group_layers(profile, 0.05);
  EXPECT_THAT(groups, ElementsAre(0, 3, 5));
  const LayerProfile merged = merged_layers(profile, groups);
  EXPECT_EQ(merged.layers[1].name, "3..4");
  EXPECT_EQ(merged.layers[2].bytes, 7);
  EXPECT_EQ(merged.bytes(), profile.bytes());
  EXPECT_EQ(merged.backward(), profile.backward());
  EXPECT_THAT(group_layers(profile, 1), ElementsAre(0));
  EXPECT_EQ(group_layers(profile, 0).size(), 7U);
}

}  // namespace
}  // namespace longhaul
