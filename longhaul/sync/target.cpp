#include "longhaul/sync/target.h"

#include <algorithm>
#include <cmath>

namespace longhaul {
namespace {

constexpr std::size_t kSmoothed = 3;

double metric_of(const TargetOptions& target, const EvalPoint& point) {
  return target.metric == Metric::kLoss ? point.loss : point.accuracy;
}

}  // namespace

std::string name_of(Metric metric) { return metric == Metric::kLoss ? "loss" : "accuracy"; }

std::vector<double> smoothed_metric(const TargetOptions& target,
                                    const std::vector<EvalPoint>& evaluations) {
  std::vector<double> means;
  for (std::size_t end = kSmoothed; end <= evaluations.size(); ++end) {
    double sum = 0;
    for (std::size_t i = end - kSmoothed; i < end; ++i) sum += metric_of(target, evaluations[i]);
    means.push_back(sum / kSmoothed);
  }
  return means;
}

std::optional<TargetReached> target_reached(const TargetOptions& target,
                                            const std::vector<EvalPoint>& evaluations) {
  const auto is_reached = [&](double value) {
    return target.metric == Metric::kLoss ? value <= target.value : value >= target.value;
  };
  const std::vector<double> means = smoothed_metric(target, evaluations);
  const auto first = std::ranges::find_if(means, is_reached);
  if (first == means.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(first - means.begin());
  const EvalPoint& point = evaluations[at + kSmoothed - 1];
  const auto step = static_cast<double>(point.step);
  if (at == 0 || !std::isfinite(means[at - 1]))
    return TargetReached{.time = point.time, .step = step};
  const double share =
      std::clamp((target.value - means[at - 1]) / (means[at] - means[at - 1]), 0.0, 1.0);
  const EvalPoint& previous = evaluations[at + kSmoothed - 2];
  const auto previous_step = static_cast<double>(previous.step);
  return TargetReached{.time = previous.time + share * (point.time - previous.time),
                       .step = previous_step + share * (step - previous_step)};
}

}  // namespace longhaul
