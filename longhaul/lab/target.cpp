#include "longhaul/lab/target.h"

#include <algorithm>

namespace longhaul::lab {
namespace {

constexpr std::size_t kSmoothed = 3;

double metric_of(const TargetSettings& target, const EvalPoint& point) {
  return target.metric == "loss" ? point.loss : point.accuracy;
}

double smoothed(const TargetSettings& target, const std::vector<EvalPoint>& evaluations,
                std::size_t last) {
  double sum = 0;
  for (std::size_t i = last + 1 - kSmoothed; i <= last; ++i)
    sum += metric_of(target, evaluations[i]);
  return sum / kSmoothed;
}

}  // namespace

std::optional<TargetReached> target_reached(const TargetSettings& target,
                                            const std::vector<EvalPoint>& evaluations) {
  const auto is_reached = [&](double value) {
    return target.metric == "loss" ? value <= target.value : value >= target.value;
  };
  for (std::size_t i = kSmoothed - 1; i < evaluations.size(); ++i) {
    const double here = smoothed(target, evaluations, i);
    if (!is_reached(here)) continue;
    const EvalPoint& point = evaluations[i];
    if (i < kSmoothed)
      return TargetReached{.time = point.time, .step = static_cast<double>(point.step)};
    const double before = smoothed(target, evaluations, i - 1);
    const double share = std::clamp((target.value - before) / (here - before), 0.0, 1.0);
    const EvalPoint& previous = evaluations[i - 1];
    const auto previous_step = static_cast<double>(previous.step);
    return TargetReached{
        .time = previous.time + share * (point.time - previous.time),
        .step = previous_step + share * (static_cast<double>(point.step) - previous_step)};
  }
  return std::nullopt;
}

}  // namespace longhaul::lab
