#include "longhaul/plan/layer_timeline.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/plan/random_layers.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace testing;

LayerSteps random_steps(std::mt19937_64& random, std::size_t layers, std::size_t period) {
  LayerSteps steps(period);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    steps[random() % period].push_back(layer);
    if (random() % 4 == 0) steps[0].push_back(layer);
  }
  for (auto& set : steps) {
    std::ranges::sort(set);
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
  return steps;
}

// The formula of PAPERS.md, written a second time.
Seconds exposed_by_formula(const LayerProfile& profile, const LayerLink& link,
                           const std::vector<std::uint32_t>& set) {
  Seconds up{};
  Seconds down{};
  Seconds exposed{};
  for (const std::uint32_t l : set) {
    Seconds done{};
    for (std::uint32_t i = 0; i <= l; ++i) done += profile.layers[i].backward;
    Seconds before{};
    for (std::size_t i = l + 1; i < profile.layers.size(); ++i) before += profile.layers[i].forward;
    const double bytes = profile.layers[l].bytes;
    up = std::max(up, done) + Seconds(bytes / link.up.bytes_per_second);
    Seconds back = up + link.latency;
    Seconds deadline = profile.backward();
    if (!link.is_one_way) {
      down = std::max(down, back + link.latency) + Seconds(bytes / link.down.bytes_per_second);
      back = down;
      deadline += before;
    }
    exposed = std::max(exposed, back - deadline);
  }
  return exposed;
}

TEST(LayerTimeline, WithoutDelaysIsTheClosedForm) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const std::size_t period = 1 + random() % 6;
    const LayerProfile profile = random_profile(random, 1 + random() % 30);
    const LayerLink link = random_link(random, profile, period);
    const LayerSteps steps = random_steps(random, profile.layers.size(), period);
    const LayerTimeline timeline = layer_timeline(profile, link, steps);
    Seconds exact{};
    Seconds formula{};
    for (const auto& set : steps) {
      exact += LayerCosts(profile, link).exposed(set);
      formula += exposed_by_formula(profile, link, set);
    }
    EXPECT_EQ(timeline.exposed, exact);
    const Seconds computing = profile.forward() + profile.backward();
    EXPECT_NEAR(timeline.exposed / computing, formula / computing, 1e-9);
    EXPECT_EQ(timeline.step_time, computing + exact / static_cast<double>(period));
  }
}

TEST(LayerTimeline, TellsWhereEachLayerIsOnItsWay) {
  const LayerTimeline timeline =
      layer_timeline(pinning_profile(), pinning_link(false), {{0, 1}, {2, 3, 4}});
  ASSERT_EQ(timeline.trips.size(), 5U);
  const LayerTimeline::Trip& second = timeline.trips[1];
  EXPECT_EQ(second.layer, 1U);
  EXPECT_EQ(second.ready, Seconds(10));
  EXPECT_EQ(second.up_begin, Seconds(16));  // layer 0 has the line from 8 to 16
  EXPECT_EQ(second.up_end, Seconds(24));
  EXPECT_EQ(second.back, Seconds(32));
  EXPECT_EQ(second.deadline, Seconds(24));
  EXPECT_EQ(timeline.trips[2].ready, Seconds(24 + 8 + 16));  // the first step was 8 s late
  EXPECT_THAT(timeline.late, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(timeline.bytes, 36e6);
}

TEST(LayerTimeline, LatencyOccupiesNoLine) {
  LayerLink link = pinning_link(false);
  link.latency = Seconds(1);
  const LayerTimeline timeline = layer_timeline(pinning_profile(), link, {{0, 1}, {2, 3, 4}});
  EXPECT_EQ(timeline.trips[1].up_begin, Seconds(16));
  EXPECT_EQ(timeline.trips[1].back, Seconds(34));
}

TEST(LayerTimeline, AMessageThatHidesCostsNothing) {
  LayerLink link = pinning_link(false);
  link.up = link.down = Bandwidth{.bytes_per_second = 1e12};
  const LayerTimeline timeline = layer_timeline(pinning_profile(), link, {{0, 1}, {2, 3}});
  EXPECT_EQ(timeline.step_time, Seconds(24));
  EXPECT_THAT(timeline.late, IsEmpty());
  EXPECT_EQ(timeline.hidden_share, 1);
}

// One layer in one part, which DeCo's formula covers: T_avg = max{T, U, (T + b + U)/(τ + 1)}.
TEST(LayerTimeline, OneLayerWithDelayTakesTheTimeOfTheDelayedRule) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    LayerProfile profile{.layers = {{.name = "all", .backward = Seconds(1), .bytes = 1}}};
    const LayerLink link{.up = {.bytes_per_second = uniform_in(random, 0.2, 4)},
                         .down = {.bytes_per_second = uniform_in(random, 0.2, 4)},
                         .latency = Seconds(uniform_in(random, 0, 3))};
    const int delay = static_cast<int>(random() % 8);
    const double up = 1 / link.up.bytes_per_second;
    const double down = 1 / link.down.bytes_per_second;
    const double expected =
        std::max({1.0, up, down, (1 + 2 * link.latency.count() + up + down) / (delay + 1)});
    const LayerTimeline timeline = layer_timeline(profile, link, {{0}}, {delay});
    EXPECT_NEAR(timeline.step_time.count(), expected, 1e-9) << i;
  }
}

TEST(LayerTimeline, ADelayIsNeverSlower) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t period = 1 + random() % 4;
    const LayerProfile profile = random_profile(random, 1 + random() % 12);
    const LayerLink link = random_link(random, profile, period);
    const LayerSteps steps = random_steps(random, profile.layers.size(), period);
    std::vector<int> delays(profile.layers.size());
    Seconds before = layer_timeline(profile, link, steps).step_time;
    for (int more = 0; more < 3; ++more) {
      for (int& delay : delays) delay += static_cast<int>(random() % 2);
      const Seconds after = layer_timeline(profile, link, steps, delays).step_time;
      EXPECT_LE(after, before * (1 + 1e-9));
      before = after;
    }
  }
}

}  // namespace
}  // namespace longhaul
