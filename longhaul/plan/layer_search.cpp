#include "longhaul/plan/layer_search.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};
constexpr double kNoGain = 1e-12;  // relative to a step's computing
// Layers that a search may send across the lines: it is over within a few tens of milliseconds.
constexpr std::int64_t kSearchTrips = 3'000'000;

using Set = std::vector<std::uint32_t>;
using Some = std::optional<std::uint32_t>;  // a layer, or none

// The sets with a round come last: a period is over with its last round.
LayerSteps in_order(LayerSteps steps) {
  std::stable_partition(steps.begin(), steps.end(), [](const Set& set) { return set.empty(); });
  return steps;
}

Set layers_of(std::size_t mask) {
  Set layers;
  for (std::uint32_t layer = 0; mask >> layer != 0; ++layer)
    if ((mask >> layer & 1U) != 0) layers.push_back(layer);
  return layers;
}

// The best sets of few layers: the same recursion as for consecutive ones, over subsets. A subset
// is the mask of its layers.
LayerSteps best_subsets(const LayerCosts& costs, std::size_t period_steps) {
  const std::size_t masks = std::size_t{1} << costs.layers().size();
  std::vector<Seconds> exposed;
  for (std::size_t mask = 0; mask < masks; ++mask)
    exposed.push_back(costs.exposed(layers_of(mask)));
  std::vector<Seconds> best(masks, kNever);  // of the sets of the steps until now
  best[0] = Seconds(0);
  std::vector<std::vector<std::size_t>> last(period_steps, std::vector<std::size_t>(masks));
  for (std::vector<std::size_t>& chosen : last) {
    std::vector<Seconds> next(masks, kNever);
    for (std::size_t mask = 0; mask < masks; ++mask) {
      // All subsets of the mask, from itself down to the empty one.
      for (std::size_t set = mask;; set = (set - 1) & mask) {
        const Seconds sum = best[mask ^ set] + exposed[set];
        if (sum < next[mask]) {
          next[mask] = sum;
          chosen[mask] = set;
        }
        if (set == 0) break;
      }
    }
    best = std::move(next);
  }
  LayerSteps steps(period_steps);
  std::size_t left = masks - 1;
  for (std::size_t step = period_steps; step-- > 0;) {
    steps[step] = layers_of(last[step][left]);
    left ^= last[step][left];
  }
  return in_order(std::move(steps));
}

// Moves layers between steps, and swaps them, as long as that exposes less.
class LocalSearch {
 public:
  LocalSearch(const LayerCosts& costs, LayerSteps steps, std::int64_t trips)
      : costs_(costs), steps_(std::move(steps)), trips_left_(trips) {
    for (const Set& set : steps_) exposed_.push_back(costs_.exposed(set));
  }

  // Swaps are tried where no move is a gain: there are many more of them.
  void run() {
    while (improve(&LocalSearch::move_out) || improve(&LocalSearch::swap_out)) {
    }
  }

  [[nodiscard]] const LayerSteps& steps() const { return steps_; }
  [[nodiscard]] std::int64_t trips_left() const { return trips_left_; }
  [[nodiscard]] Seconds exposed() const {
    return std::accumulate(exposed_.begin(), exposed_.end(), Seconds(0));
  }

 private:
  [[nodiscard]] Seconds least_gain() const { return kNoGain * costs_.computing(); }

  // Makes such changes of every step as long as they are gains. Returns whether there was one.
  bool improve(bool (LocalSearch::*change)(std::size_t)) {
    bool has_gained = false;
    for (std::size_t from = 0; from < steps_.size(); ++from) {
      while (exposed_[from] > least_gain() && trips_left_ > 0 && (this->*change)(from))
        has_gained = true;
    }
    return has_gained;
  }

  // The layers without which a step is shorter.
  Set helpful(std::size_t from) {
    Set layers;
    for (const std::uint32_t layer : steps_[from]) {
      if (exposed_with(steps_[from], layer, {}, exposed_[from]) < exposed_[from])
        layers.push_back(layer);
    }
    return layers;
  }

  bool move_out(std::size_t from) {
    for (const std::uint32_t layer : helpful(from)) {
      for (std::size_t to = 0; to < steps_.size(); ++to) {
        if (to != from && try_swap(from, to, layer, {})) return true;
      }
    }
    return false;
  }

  bool swap_out(std::size_t from) {
    for (const std::uint32_t layer : helpful(from)) {
      for (std::size_t to = 0; to < steps_.size(); ++to) {
        if (to == from) continue;
        for (const std::uint32_t other : Set(steps_[to])) {
          if (try_swap(from, to, layer, other)) return true;
        }
      }
    }
    return false;
  }

  // Moves `layer` from one step to another if that is a gain; in exchange for `other`, if given.
  bool try_swap(std::size_t from, std::size_t to, std::uint32_t layer, Some other) {
    const Seconds old = exposed_[from] + exposed_[to] - least_gain();
    const Seconds at_from = exposed_with(steps_[from], layer, other, old);
    if (at_from >= old) return false;
    const Seconds at_to = exposed_with(steps_[to], other, layer, old - at_from);
    if (at_from + at_to >= old) return false;
    replace(steps_[from], layer, other);
    replace(steps_[to], other, layer);
    exposed_[from] = at_from;
    exposed_[to] = at_to;
    return true;
  }

  // The exposed time of the set without one layer and with another one. Returns `enough` or more as
  // soon as that is certain.
  Seconds exposed_with(const Set& set, Some without, Some with, Seconds enough) {
    LayerLines lines;
    Seconds late{};
    const auto send = [&](std::uint32_t index) {
      --trips_left_;
      const LayerCosts::Layer& layer = costs_.layers()[index];
      late = std::max(late, lines.cross(layer, layer.ready, costs_.latency()) - layer.deadline);
    };
    bool is_pending = with.has_value();
    for (const std::uint32_t layer : set) {
      if (is_pending && *with < layer) {
        send(*with);
        is_pending = false;
      }
      if (layer != without) send(layer);
      if (late >= enough) return late;
    }
    if (is_pending) send(*with);
    return late;
  }

  static void replace(Set& set, Some without, Some with) {
    if (without) std::erase(set, *without);
    if (with) set.insert(std::ranges::lower_bound(set, *with), *with);
  }

  const LayerCosts& costs_;
  LayerSteps steps_;
  std::vector<Seconds> exposed_;
  std::int64_t trips_left_;
};

// Gives each layer, in this order, to the step that it lengthens least; among those to the step
// that has the least to send.
LayerSteps dealt_out(const LayerCosts& costs, std::size_t period_steps, const Set& order) {
  LayerSteps steps(period_steps);
  std::vector<Seconds> exposed(period_steps);
  std::vector<Seconds> load(period_steps);
  for (const std::uint32_t layer : order) {
    std::size_t chosen = 0;
    std::pair least{kNever, kNever};
    Set chosen_set;
    for (std::size_t step = 0; step < period_steps; ++step) {
      Set set = steps[step];
      set.insert(std::ranges::lower_bound(set, layer), layer);
      const std::pair cost{costs.exposed(set) - exposed[step], load[step]};
      if (cost >= least) continue;
      least = cost;
      chosen = step;
      chosen_set = std::move(set);
    }
    steps[chosen] = std::move(chosen_set);
    exposed[chosen] += least.first;
    load[chosen] += costs.layers()[layer].up + costs.layers()[layer].down;
  }
  return steps;
}

}  // namespace

LayerSteps contiguous_sets(const LayerCosts& costs, std::size_t period_steps) {
  LONGHAUL_CHECK_GT(period_steps, 0U);
  const std::size_t layers = costs.layers().size();
  // best[h][e]: of the first e layers in h steps; from[h][e]: where the last of the sets begins.
  std::vector best(period_steps + 1, std::vector<Seconds>(layers + 1, kNever));
  std::vector from(period_steps + 1, std::vector<std::size_t>(layers + 1));
  best[0][0] = Seconds(0);
  const auto offer = [&](std::size_t h, std::size_t begin, std::size_t end, Seconds exposed) {
    const Seconds sum = best[h - 1][begin] + exposed;
    if (sum >= best[h][end]) return;
    best[h][end] = sum;
    from[h][end] = begin;
  };
  for (std::size_t begin = 0; begin <= layers; ++begin) {
    for (std::size_t h = 1; h <= period_steps; ++h) offer(h, begin, begin, Seconds(0));
    LayerLines lines;
    Seconds exposed{};
    for (std::size_t end = begin + 1; end <= layers; ++end) {
      const LayerCosts::Layer& layer = costs.layers()[end - 1];
      exposed =
          std::max(exposed, lines.cross(layer, layer.ready, costs.latency()) - layer.deadline);
      for (std::size_t h = 1; h <= period_steps; ++h) offer(h, begin, end, exposed);
    }
  }
  LayerSteps steps(period_steps);
  std::size_t end = layers;
  for (std::size_t h = period_steps; h > 0; --h) {
    const std::size_t begin = from[h][end];
    steps[h - 1].resize(end - begin);
    std::iota(steps[h - 1].begin(), steps[h - 1].end(), static_cast<std::uint32_t>(begin));
    end = begin;
  }
  return in_order(std::move(steps));
}

LayerSteps best_sets(const LayerCosts& costs, std::size_t period_steps) {
  const std::size_t layers = costs.layers().size();
  if (layers <= kExactLayers) return best_subsets(costs, period_steps);
  LayerSteps best = contiguous_sets(costs, period_steps);
  if (period_steps == 1) return best;
  Set order(layers);
  std::iota(order.begin(), order.end(), 0);
  const LayerSteps from_output = dealt_out(costs, period_steps, order);
  std::ranges::reverse(order);
  const LayerSteps from_input = dealt_out(costs, period_steps, order);
  std::int64_t trips = kSearchTrips;
  for (const LayerSteps& start : {from_input, best, from_output}) {
    LocalSearch search(costs, start, trips);
    search.run();
    trips = search.trips_left();
    if (search.exposed() < exposed_of(costs, best)) best = search.steps();
  }
  return in_order(std::move(best));
}

LayerSteps filled(const LayerCosts& costs, LayerSteps steps, std::size_t most_rounds) {
  const Seconds nothing = kNoGain * costs.computing();
  std::vector<std::size_t> rounds(costs.layers().size());
  for (const Set& set : steps)
    for (const std::uint32_t layer : set) ++rounds[layer];
  std::size_t total = std::accumulate(rounds.begin(), rounds.end(), std::size_t{0});
  Set order(rounds.size());
  for (Set& set : steps) {
    const Seconds exposed = costs.exposed(set);
    std::iota(order.begin(), order.end(), 0);
    // Layers with few rounds first.
    std::ranges::stable_sort(order, {}, [&](std::uint32_t layer) { return rounds[layer]; });
    for (const std::uint32_t layer : order) {
      const auto place = std::ranges::lower_bound(set, layer);
      if (total >= most_rounds || (place != set.end() && *place == layer)) continue;
      const auto added = set.insert(place, layer);
      if (costs.exposed(set) > exposed + nothing) {
        set.erase(added);
        continue;
      }
      ++rounds[layer];
      ++total;
    }
  }
  return steps;
}

Seconds exposed_of(const LayerCosts& costs, const LayerSteps& steps) {
  Seconds sum{};
  for (const Set& set : steps) sum += costs.exposed(set);
  return sum;
}

}  // namespace longhaul
