#include "longhaul/plan/layer_timeline.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

// Backlog can grow for a long time before a delay is used up; see line_bound().
constexpr std::size_t kMostPeriods = 400;
constexpr double kSameTime = 1e-10;  // relative to a step's computing

// A layer that is sent and not merged, and the number of forward passes until it is due.
struct Pending {
  std::uint32_t layer = 0;
  int passes = 0;
  Seconds back{};
};

// Replays steps one after the other. All instants count from the begin of the present step's
// backward pass, so that steps without backlog have the same bits.
class Walk {
 public:
  Walk(const LayerCosts& costs, const LayerSteps& schedule, const std::vector<int>& delays)
      : costs_(costs), schedule_(schedule), delays_(delays) {}

  // Returns by how much the period is longer than its computing.
  Seconds walk_period() {
    trips_.clear();
    late_.clear();
    Seconds exposed{};
    for (std::uint32_t step = 0; step < schedule_.size(); ++step) {
      send(step, step * costs_.computing() + exposed);
      exposed += end_step();
    }
    return exposed;
  }
  // The trips of the last period.
  [[nodiscard]] const std::vector<LayerTimeline::Trip>& trips() const { return trips_; }
  [[nodiscard]] const std::set<std::uint32_t>& late() const { return late_; }

  // Everything that the next period depends on.
  [[nodiscard]] std::vector<Seconds> state() const {
    std::vector<Seconds> instants{std::max(lines_.up_free, Seconds(0)),
                                  std::max(lines_.down_free, Seconds(0))};
    for (const Pending& pending : pending_) instants.push_back(std::max(pending.back, Seconds(0)));
    return instants;
  }

 private:
  // `begin`: of the step's backward pass, in the period.
  void send(std::uint32_t step, Seconds begin) {
    for (const std::uint32_t layer : schedule_[step]) {
      const LayerCosts::Layer& cost = costs_.layers()[layer];
      const int delay = delays_.empty() ? 0 : delays_[layer];
      const Seconds up_begin = std::max(lines_.up_free, cost.ready);
      const Seconds back = lines_.cross(cost, cost.ready, costs_.latency());
      pending_.push_back({.layer = layer, .passes = delay, .back = back});
      trips_.push_back({.layer = layer,
                        .step = step,
                        .ready = begin + cost.ready,
                        .up_begin = begin + up_begin,
                        .up_end = begin + lines_.up_free,
                        .back = begin + back,
                        .deadline = begin + cost.deadline});
    }
  }

  // The forward pass that follows waits for the layers that are due. Returns how long.
  Seconds end_step() {
    Seconds late{};
    for (const Pending& pending : pending_) {
      if (pending.passes > 0) continue;
      const Seconds behind = pending.back - costs_.layers()[pending.layer].deadline;
      if (behind > kSameTime * costs_.computing()) late_.insert(pending.layer);
      late = std::max(late, behind);
    }
    std::erase_if(pending_, [](const Pending& pending) { return pending.passes == 0; });
    const Seconds duration = costs_.computing() + late;
    lines_.up_free -= duration;
    lines_.down_free -= duration;
    for (Pending& pending : pending_) {
      --pending.passes;
      pending.back -= duration;
    }
    return late;
  }

  const LayerCosts& costs_;
  const LayerSteps& schedule_;
  const std::vector<int>& delays_;
  LayerLines lines_;
  std::vector<Pending> pending_;
  std::vector<LayerTimeline::Trip> trips_;
  std::set<std::uint32_t> late_;
};

bool are_alike(const std::vector<Seconds>& a, const std::vector<Seconds>& b, Seconds tolerance) {
  return std::ranges::equal(
      a, b, [tolerance](Seconds x, Seconds y) { return x - y <= tolerance && y - x <= tolerance; });
}

// Walks until the lines are as at an earlier begin of a period. Returns the time by which a period
// is then longer than its computing.
Seconds steady_exposed(Walk& walk, Seconds tolerance) {
  std::vector<std::vector<Seconds>> states{walk.state()};
  std::vector<Seconds> ends{Seconds(0)};  // exposed time until each state
  while (states.size() <= kMostPeriods) {
    ends.push_back(ends.back() + walk.walk_period());
    std::vector<Seconds> state = walk.state();
    for (std::size_t earlier = states.size(); earlier-- > 0;) {
      if (!are_alike(states[earlier], state, tolerance)) continue;
      return (ends.back() - ends[earlier]) / static_cast<double>(states.size() - earlier);
    }
    states.push_back(std::move(state));
  }
  const std::size_t half = ends.size() / 2;
  return (ends.back() - ends[half]) / static_cast<double>(ends.size() - 1 - half);
}

// No period is shorter than its busiest line.
Seconds line_bound(const LayerCosts& costs, const LayerSteps& schedule) {
  Seconds up{};
  Seconds down{};
  for (const auto& layers : schedule) {
    for (const std::uint32_t layer : layers) {
      up += costs.layers()[layer].up;
      down += costs.layers()[layer].down;
    }
  }
  return std::max(up, down);
}

double hidden_share_of(const LayerCosts& costs, const LayerSteps& schedule, Seconds exposed) {
  Seconds alone{};
  for (const auto& layers : schedule) alone += costs.alone(layers);
  return alone > Seconds(0) ? std::clamp(1 - exposed / alone, 0.0, 1.0) : 1;
}

}  // namespace

LayerCosts::LayerCosts(const LayerProfile& profile, const LayerLink& link)
    : computing_(profile.forward() + profile.backward()),
      latency_(link.is_one_way ? link.latency : 2 * link.latency) {
  LONGHAUL_CHECK(link.up.bytes_per_second > 0);
  LONGHAUL_CHECK(link.is_one_way || link.down.bytes_per_second > 0);
  const Seconds backward = profile.backward();
  Seconds ready{};
  Seconds after = profile.forward();  // forward time from the present layer on, without it
  for (const LayerProfile::Layer& layer : profile.layers) {
    ready += layer.backward;
    after -= layer.forward;
    layers_.push_back(
        {.up = Seconds(layer.bytes / link.up.bytes_per_second),
         .down = Seconds(link.is_one_way ? 0 : layer.bytes / link.down.bytes_per_second),
         .ready = ready,
         .deadline = link.is_one_way ? backward : backward + std::max(after, Seconds(0))});
  }
}

Seconds LayerCosts::exposed(std::span<const std::uint32_t> layers) const {
  LayerLines lines;
  Seconds late{};
  for (const std::uint32_t index : layers) {
    const Layer& layer = layers_[index];
    late = std::max(late, lines.cross(layer, layer.ready, latency_) - layer.deadline);
  }
  return late;
}

Seconds LayerCosts::alone(std::span<const std::uint32_t> layers) const {
  LayerLines lines;
  Seconds end{};
  for (const std::uint32_t index : layers) end = lines.cross(layers_[index], Seconds(0), latency_);
  return end;
}

LayerTimeline layer_timeline(const LayerProfile& profile, const LayerLink& link,
                             const LayerSteps& schedule, const std::vector<int>& delays) {
  LONGHAUL_CHECK(!schedule.empty());
  LONGHAUL_CHECK(delays.empty() || delays.size() == profile.layers.size());
  const LayerCosts costs(profile, link);
  const auto period = static_cast<double>(schedule.size());
  Walk walk(costs, schedule, delays);
  LayerTimeline timeline;
  timeline.exposed = steady_exposed(walk, kSameTime * costs.computing());
  if (!delays.empty())
    timeline.exposed =
        std::max(timeline.exposed, line_bound(costs, schedule) - period * costs.computing());
  timeline.step_time = costs.computing() + timeline.exposed / period;
  timeline.hidden_share = hidden_share_of(costs, schedule, timeline.exposed);
  timeline.trips = walk.trips();
  timeline.late.assign(walk.late().begin(), walk.late().end());
  for (LayerTimeline::Trip& trip : timeline.trips) {
    timeline.bytes += profile.layers[trip.layer].bytes;
    if (!delays.empty()) trip.deadline += delays[trip.layer] * timeline.step_time;
  }
  return timeline;
}

}  // namespace longhaul
