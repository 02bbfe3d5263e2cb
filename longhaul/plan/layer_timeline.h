// When the layers of a schedule cross the link: one walk for the planner, the command and the
// report. The lab measures the same by events, and its clock never sees this file.
//
// Rounds close in the order of their names, step and part, and parts are numbered in backward
// order. So the layers of a step are sent in the order in which they become ready:
//
//   up_free   = max(up_free, ready) + bytes / up
//   down_free = max(down_free, up_free + latency) + bytes / down     the layer is back
//
// The latency is of both ways and occupies no line. A layer must be back before its own next
// forward use. A late layer lengthens the step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/base/units.h"
#include "longhaul/plan/layer_profile.h"

namespace longhaul {

struct LayerLink {
  Bandwidth up;
  Bandwidth down;
  Seconds latency{};  // one way
  // A layer crosses one line once, as in an all-reduce: `up` and one latency. All layers must be
  // back at the end of the backward pass, as in the published method.
  bool is_one_way = false;
};

// The layers of each step of a period, in ascending order: the form of Plan::schedule.
using LayerSteps = std::vector<std::vector<std::uint32_t>>;

// The times of a profile's layers over a link. Instants count from the begin of a backward pass.
class LayerCosts {
 public:
  struct Layer {
    Seconds up{};  // that its bytes occupy the line
    Seconds down{};
    Seconds ready{};     // its backward pass ends
    Seconds deadline{};  // its next forward use begins
  };

  // The link has bandwidth in each direction that is in use.
  LayerCosts(const LayerProfile& profile, const LayerLink& link);

  [[nodiscard]] std::span<const Layer> layers() const { return layers_; }
  [[nodiscard]] Seconds computing() const { return computing_; }  // forward and backward
  [[nodiscard]] Seconds latency() const { return latency_; }      // of a crossing
  // The time by which these layers (ascending), sent in one step, lengthen it.
  [[nodiscard]] Seconds exposed(std::span<const std::uint32_t> layers) const;
  // The time that they take if they are all ready at once and nothing is computed.
  [[nodiscard]] Seconds alone(std::span<const std::uint32_t> layers) const;

 private:
  std::vector<Layer> layers_;
  Seconds computing_{};
  Seconds latency_{};
};

// The two lines of a replica, which layers cross one after the other.
struct LayerLines {
  Seconds up_free{};
  Seconds down_free{};

  // Returns when the layer is back.
  Seconds cross(const LayerCosts::Layer& layer, Seconds ready, Seconds latency) {
    up_free = std::max(up_free, ready) + layer.up;
    down_free = std::max(down_free, up_free + latency) + layer.down;
    return down_free;
  }
};

// A schedule in its steady state.
struct LayerTimeline {
  // A layer on its way. Instants count from the begin of the first backward pass of the period.
  struct Trip {
    std::uint32_t layer = 0;
    std::uint32_t step = 0;  // of the period
    Seconds ready{};
    Seconds up_begin{};
    Seconds up_end{};
    Seconds back{};
    Seconds deadline{};  // its forward use, if nothing is late in that step
  };

  Seconds step_time{};              // mean
  Seconds exposed{};                // by which a period is longer than its computing
  double hidden_share = 1;          // of the time that communication takes by itself
  double bytes = 0;                 // that a replica sends in a period
  std::vector<Trip> trips;          // of one period
  std::vector<std::uint32_t> late;  // layers that a forward pass waits for, ascending
};

// Walks the schedule until a period begins as an earlier one did. `delays` are those of the late
// correction, in steps by layer. A layer sent in step s must be back before its forward use in step
// s + 1 + delay. Empty: all 0; then no step depends on another.
LayerTimeline layer_timeline(const LayerProfile& profile, const LayerLink& link,
                             const LayerSteps& schedule, const std::vector<int>& delays = {});

}  // namespace longhaul
