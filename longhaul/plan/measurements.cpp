#include "longhaul/plan/measurements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

// In double: the squares of a run that diverges leave the range of float before its values do.
double square_of(const CheckedPayload& payload) {
  if (payload.empty()) return 0;
  const PayloadView& view = payload.view();
  std::vector<float> values;
  TileEntries entries;
  double sum = 0;
  for (std::size_t tile = 0; tile < tile_count(view.elements()); ++tile) {
    if (view.is_dense()) {
      values.assign(tile_size(tile, view.elements()), 0.0F);
      view.add_tile(tile, 1.0F, values, entries);
    } else {
      view.entries_of(tile, entries);
    }
    for (const float v : view.is_dense() ? std::span(values) : std::span(entries.values))
      sum += static_cast<double>(v) * static_cast<double>(v);
  }
  return sum;
}

}  // namespace

void StepTimer::add(Seconds step) {
  sum_ += step;
  ++steps_;
  if (sum_ < kStretch) return;
  if (last_.size() == kStretches) last_.erase(last_.begin());
  last_.push_back(sum_ / steps_);
  sum_ = Seconds(0);
  steps_ = 0;
}

Seconds StepTimer::typical() const {
  if (last_.empty()) return steps_ == 0 ? Seconds(0) : sum_ / steps_;
  std::vector<Seconds> steps = last_;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

RoundFacts facts_of(std::span<const WeightedPayload> sent, const CheckedPayload& mean,
                    Conditions replicas, const Plan& current) {
  std::vector<double> weights;
  std::vector<double> squares;
  for (const WeightedPayload& one : sent) {
    weights.push_back(static_cast<double>(one.weight));
    squares.push_back(square_of(one.payload));
  }
  const double mean_square = square_of(mean);
  return {.replicas = std::move(replicas),
          .agreement = agreement_of(weights, squares, mean_square),
          .mean_norm = std::sqrt(mean_square),
          .current = current};
}

}  // namespace longhaul
