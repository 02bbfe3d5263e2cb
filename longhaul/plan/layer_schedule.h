// Chooses which layers are averaged in which step of a period (DreamDDP, docs/layers.md): those
// whose way the backward pass and the next forward pass hide. Pure: profile and link in, schedule
// out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/plan/layer_profile.h"
#include "longhaul/plan/layer_timeline.h"

namespace longhaul {

// How a recipe sends the layers of a model.
enum class LayerPolicy : std::uint8_t {
  kWhole,          // all as one message in the last step of a period (D-SGD, local SGD)
  kAsReady,        // each on its own in the last step (period 1: wait-free backward)
  kEqualNumber,    // as many layers in each step, from the output side (PLSGD-ENP)
  kContiguous,     // the best consecutive sets
  kScheduled,      // the best sets of all, and idle time filled (DreamDDP)
  kScheduledLate,  // the same; layers that cannot be hidden merge later (the late correction)
};

struct LayerSchedule {
  LayerSteps steps;         // fits Plan::schedule; each layer at least once
  std::vector<int> delays;  // of each layer, in steps; empty: all 0
  LayerTimeline timeline;
  Seconds bound{};     // no schedule of this period has shorter steps
  std::string reason;  // one sentence

  [[nodiscard]] int longest_delay() const;
};

// Periods up to this are tried where none is asked for.
inline constexpr std::size_t kMostChosenPeriod = 20;

// The schedule of that policy. period_steps 0: the smallest period up to kMostChosenPeriod whose
// steps are at most 3 % longer than the best period's; 1 for kAsReady. For kWhole the profile has
// one layer (see merged_layers()).
LayerSchedule make_layer_schedule(const LayerProfile& profile, const LayerLink& link,
                                  LayerPolicy policy, std::size_t period_steps = 0);

// The least time of a step, whichever layers go in which step. With delays (`is_late`) it is the
// longer one of computing and the step's share of the busier line.
Seconds step_time_bound(const LayerCosts& costs, std::size_t period_steps, bool is_late = false);

// Joins neighbours so that what a message costs beside its bytes is paid once: the first layer of
// each group. Each group but the last has at least this share of all bytes; share 1: one group.
std::vector<std::uint32_t> group_layers(const LayerProfile& profile, double least_share);
// The profile whose layers are those groups, named "first..last".
LayerProfile merged_layers(const LayerProfile& profile, std::span<const std::uint32_t> groups);

}  // namespace longhaul
