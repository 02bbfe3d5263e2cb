#include "longhaul/plan/layer_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/units.h"
#include "longhaul/plan/layer_search.h"
#include "longhaul/plan/reason.h"
#include "longhaul/round/plan.h"

namespace longhaul {
namespace {

constexpr double kAsGood = 1.03;            // a smaller period is worth so much of a step's time
constexpr double kAsGoodWithDelay = 1.005;  // and a smaller delay so much
constexpr int kMostDelay = 64;

std::vector<std::uint32_t> consecutive(std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> layers(end - begin);
  std::iota(layers.begin(), layers.end(), static_cast<std::uint32_t>(begin));
  return layers;
}

LayerSteps all_in_last_step(std::size_t layers, std::size_t period_steps) {
  LayerSteps steps(period_steps);
  steps.back() = consecutive(0, layers);
  return steps;
}

// ⌈L/H⌉ layers a step. With fewer steps than that fills, the first ones are empty.
LayerSteps equal_numbers(std::size_t layers, std::size_t period_steps) {
  const std::size_t each = (layers + period_steps - 1) / period_steps;
  const std::size_t used = (layers + each - 1) / each;
  LayerSteps steps(period_steps);
  for (std::size_t i = 0; i < used; ++i)
    steps[period_steps - used + i] = consecutive(i * each, std::min((i + 1) * each, layers));
  return steps;
}

bool is_late(LayerPolicy policy) { return policy == LayerPolicy::kScheduledLate; }

// Without further rounds and delays.
LayerSteps sets_of(const LayerCosts& costs, LayerPolicy policy, std::size_t period_steps) {
  const std::size_t layers = costs.layers().size();
  switch (policy) {
    case LayerPolicy::kWhole:
    case LayerPolicy::kAsReady:
      return all_in_last_step(layers, period_steps);
    case LayerPolicy::kEqualNumber:
      return equal_numbers(layers, period_steps);
    case LayerPolicy::kContiguous:
      return contiguous_sets(costs, period_steps);
    case LayerPolicy::kScheduled:
    case LayerPolicy::kScheduledLate:
      break;
  }
  return best_sets(costs, period_steps);
}

// Delays every layer that a forward pass waits for by one more step, until none does or a line is
// never idle. A layer that is late while others are late too would be later still without them. So
// no layer gets a longer delay than it needs.
void delay_late_layers(const LayerProfile& profile, const LayerLink& link,
                       LayerSchedule& schedule) {
  const Seconds enough = kAsGoodWithDelay * schedule.bound;
  std::vector<int> delays(profile.layers.size());
  LayerTimeline timeline = schedule.timeline;
  while (timeline.step_time > enough && !timeline.late.empty()) {
    for (const std::uint32_t layer : timeline.late) ++delays[layer];
    if (std::ranges::max(delays) > kMostDelay) return;
    timeline = layer_timeline(profile, link, schedule.steps, delays);
    if (kAsGoodWithDelay * timeline.step_time > schedule.timeline.step_time) continue;
    schedule.delays = delays;
    schedule.timeline = timeline;
  }
}

std::string steps_text(std::size_t steps) {
  return std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

std::string reason_of(const LayerCosts& costs, const LayerSchedule& schedule, bool is_chosen) {
  const Seconds computing = costs.computing();
  const auto period = schedule.steps.size();
  Seconds line{};
  for (const LayerCosts::Layer& layer : costs.layers()) line += std::max(layer.up, layer.down);
  std::string text = "the model occupies a line for " + to_string(line) + ", " +
                     formatted("%.2g", line / computing) + " steps of computing";
  text += is_chosen ? ", and the steps of no smaller period than " + std::to_string(period) +
                          " are about as short"
                    : "";
  text += "; " + percent(schedule.timeline.hidden_share) +
          " of the communication is hidden, so a step takes " +
          to_string(schedule.timeline.step_time) + " of which " + to_string(computing) +
          " are computing";
  const auto delayed = std::ranges::count_if(schedule.delays, [](int delay) { return delay > 0; });
  if (delayed > 0)
    text += "; " + std::to_string(delayed) + (delayed == 1 ? " layer merges" : " layers merge") +
            " up to " + steps_text(static_cast<std::size_t>(schedule.longest_delay())) + " later";
  return text;
}

LayerSchedule schedule_of(const LayerProfile& profile, const LayerLink& link, LayerPolicy policy,
                          std::size_t period_steps) {
  const LayerCosts costs(profile, link);
  LayerSchedule schedule{.steps = sets_of(costs, policy, period_steps),
                         .bound = step_time_bound(costs, period_steps, is_late(policy))};
  schedule.timeline = layer_timeline(profile, link, schedule.steps);
  if (is_late(policy)) delay_late_layers(profile, link, schedule);
  const bool is_filled = policy == LayerPolicy::kScheduled || is_late(policy);
  if (is_filled && schedule.delays.empty()) {
    schedule.steps = filled(costs, std::move(schedule.steps), kMostScheduledRounds);
    schedule.timeline = layer_timeline(profile, link, schedule.steps);
  }
  return schedule;
}

LayerSchedule smallest_good_period(const LayerProfile& profile, const LayerLink& link,
                                   LayerPolicy policy) {
  const LayerCosts costs(profile, link);
  const Seconds bound = step_time_bound(costs, kMostChosenPeriod, is_late(policy));
  std::vector<LayerSchedule> tried;
  Seconds best{std::numeric_limits<double>::infinity()};
  for (std::size_t period = 1; period <= kMostChosenPeriod; ++period) {
    tried.push_back(schedule_of(profile, link, policy, period));
    best = std::min(best, tried.back().timeline.step_time);
    if (best <= kAsGood * bound) break;  // no period is so much better
  }
  return *std::ranges::find_if(tried, [&](const LayerSchedule& schedule) {
    return schedule.timeline.step_time <= kAsGood * best;
  });
}

}  // namespace

int LayerSchedule::longest_delay() const { return delays.empty() ? 0 : std::ranges::max(delays); }

LayerSchedule make_layer_schedule(const LayerProfile& profile, const LayerLink& link,
                                  LayerPolicy policy, std::size_t period_steps) {
  LONGHAUL_CHECK(!profile.layers.empty());
  LONGHAUL_CHECK(policy != LayerPolicy::kWhole || profile.layers.size() == 1);
  const bool is_chosen = period_steps == 0 && policy != LayerPolicy::kAsReady;
  LayerSchedule schedule =
      is_chosen ? smallest_good_period(profile, link, policy)
                : schedule_of(profile, link, policy, std::max<std::size_t>(period_steps, 1));
  schedule.reason = reason_of(LayerCosts(profile, link), schedule, is_chosen);
  return schedule;
}

// For every layer l: a set sends none of the layers from l on before l is ready, and needs one of
// them back at l's deadline or earlier. The window between is shorter by the latency and by the
// least time on the other line. Time that these layers need on a line beyond the window is exposed.
// k of the period's sets have a layer from l on; k = 1 and k = H are the extremes.
Seconds step_time_bound(const LayerCosts& costs, std::size_t period_steps, bool is_late) {
  const auto period = static_cast<double>(period_steps);
  Seconds up{};
  Seconds down{};
  Seconds least_up{std::numeric_limits<double>::infinity()};
  Seconds least_down = least_up;
  Seconds exposed{};
  for (std::size_t index = costs.layers().size(); index-- > 0;) {
    const LayerCosts::Layer& layer = costs.layers()[index];
    up += layer.up;
    down += layer.down;
    least_up = std::min(least_up, layer.up);
    least_down = std::min(least_down, layer.down);
    const Seconds window = layer.deadline - layer.ready - costs.latency();
    const auto exposed_by = [&](Seconds line, Seconds other_line) {
      const Seconds beyond = other_line - window;
      return line + std::min(beyond, period * beyond);
    };
    exposed = std::max({exposed, exposed_by(up, least_down), exposed_by(down, least_up)});
  }
  const Seconds lines = std::max(up, down) / period;
  if (is_late) return std::max(costs.computing(), lines);
  return std::max({costs.computing(), lines, costs.computing() + exposed / period});
}

std::vector<std::uint32_t> group_layers(const LayerProfile& profile, double least_share) {
  const double least = std::min(least_share, 1.0) * profile.bytes();
  std::vector<std::uint32_t> groups;
  double bytes = least;  // of the group before
  for (std::uint32_t layer = 0; layer < profile.layers.size(); ++layer) {
    if (layer == 0 || bytes >= least) {
      groups.push_back(layer);
      bytes = 0;
    }
    bytes += profile.layers[layer].bytes;
  }
  if (groups.size() > 1 && bytes < least) groups.pop_back();
  return groups;
}

LayerProfile merged_layers(const LayerProfile& profile, std::span<const std::uint32_t> groups) {
  LayerProfile merged{.batch = profile.batch, .overhead_share = profile.overhead_share};
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const std::size_t begin = groups[group];
    const std::size_t end = group + 1 < groups.size() ? groups[group + 1] : profile.layers.size();
    LayerProfile::Layer layer = profile.layers[begin];
    for (std::size_t i = begin + 1; i < end; ++i) {
      layer.forward += profile.layers[i].forward;
      layer.backward += profile.layers[i].backward;
      layer.bytes += profile.layers[i].bytes;
    }
    if (end > begin + 1) layer.name += ".." + profile.layers[end - 1].name;
    merged.layers.push_back(std::move(layer));
  }
  return merged;
}

}  // namespace longhaul
