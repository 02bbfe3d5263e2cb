#include "longhaul/lab/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "longhaul/lab/factors.h"
#include "longhaul/sync/target.h"

namespace longhaul::lab {
namespace {

bool is_better(const TargetOptions& target, double a, double b) {
  return target.metric == Metric::kLoss ? a < b : a > b;
}

std::optional<double> best_value(const TargetOptions& target, const RunResult& run) {
  std::optional<double> best;
  for (const double mean : smoothed_metric(target, run.evaluations)) {
    if (std::isfinite(mean) && (!best || is_better(target, mean, *best))) best = mean;
  }
  return best;
}

template <typename Value>
std::optional<Spread> spread_over(const Summary& summary, const std::vector<RunResult>& runs,
                                  Value value) {
  std::vector<double> values;
  for (const std::size_t run : summary.runs) {
    const std::optional<double> one = value(runs[run]);
    if (one && std::isfinite(*one)) values.push_back(*one);
  }
  return spread_of(std::move(values));
}

// Nothing unless the median run reached the target.
template <typename Value>
std::optional<Spread> spread_of_reached(const Summary& summary, const std::vector<RunResult>& runs,
                                        Value value) {
  if (2 * summary.reached <= summary.runs.size()) return std::nullopt;
  std::vector<double> values;
  for (const std::size_t run : summary.runs)
    values.push_back(value(runs[run]).value_or(std::numeric_limits<double>::infinity()));
  return spread_of(std::move(values));
}

void fill(Summary& summary, const TargetOptions& target, const std::vector<RunResult>& runs) {
  using Maybe = std::optional<double>;
  for (const std::size_t i : summary.runs) {
    const RunResult& run = runs[i];
    summary.reached += run.time_to_target ? 1U : 0U;
    summary.diverged += run.status == RunStatus::kDiverged ? 1U : 0U;
    summary.interrupted += run.status == RunStatus::kInterrupted ? 1U : 0U;
    const Maybe best = best_value(target, run);
    if (best && (!summary.best_value || is_better(target, *best, *summary.best_value)))
      summary.best_value = best;
  }
  summary.time_to_target_s = spread_of_reached(summary, runs, [](const RunResult& run) {
    return run.time_to_target ? Maybe(run.time_to_target->count()) : std::nullopt;
  });
  summary.steps_to_target = spread_of_reached(summary, runs, [](const RunResult& run) {
    return run.steps_to_target ? Maybe(static_cast<double>(*run.steps_to_target)) : std::nullopt;
  });
  const auto over = [&](auto value) { return spread_over(summary, runs, value); };
  summary.final_loss = over([](const RunResult& run) { return run.final_loss; });
  summary.final_accuracy = over([](const RunResult& run) { return run.final_accuracy; });
  summary.step_time_s = over([](const RunResult& run) { return Maybe(run.step_time.count()); });
  summary.efficiency = over([](const RunResult& run) { return Maybe(run.efficiency); });
  summary.computing = over([](const RunResult& run) {
    const Maybe share = computing_share(run);
    return share ? share : Maybe(run.efficiency);
  });
  summary.bytes_up =
      over([](const RunResult& run) { return Maybe(static_cast<double>(run.bytes_up)); });
  summary.bytes_down =
      over([](const RunResult& run) { return Maybe(static_cast<double>(run.bytes_down)); });
}

// Sooner at the target; where neither got there, the better value.
bool is_ahead(const TargetOptions& target, const Summary& a, const Summary& b) {
  if (a.time_to_target_s && b.time_to_target_s)
    return a.time_to_target_s->median < b.time_to_target_s->median;
  if (a.time_to_target_s.has_value() != b.time_to_target_s.has_value())
    return a.time_to_target_s.has_value();
  if (a.best_value && b.best_value) return is_better(target, *a.best_value, *b.best_value);
  return a.best_value.has_value() && !b.best_value.has_value();
}

}  // namespace

std::optional<Spread> spread_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
  return Spread{.median = median, .least = values.front(), .most = values.back()};
}

std::vector<Summary> summarise(const TargetOptions& target, const std::vector<RunResult>& runs) {
  std::vector<Summary> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto group = std::ranges::find_if(all, [&](const Summary& summary) {
      return summary.recipe == runs[i].recipe && summary.settings == runs[i].settings;
    });
    if (group == all.end())
      group = all.insert(all.end(), {.recipe = runs[i].recipe, .settings = runs[i].settings});
    group->runs.push_back(i);
  }
  for (Summary& summary : all) fill(summary, target, runs);
  for (Summary& summary : all) {
    summary.is_best = std::ranges::none_of(all, [&](const Summary& other) {
      return other.recipe == summary.recipe && is_ahead(target, other, summary);
    });
  }
  return all;
}

std::optional<double> speed_up(const Summary& of, const std::vector<Summary>& all) {
  const auto base = std::ranges::find_if(
      all, [](const Summary& summary) { return summary.recipe == "d-sgd" && summary.is_best; });
  if (base == all.end() || !base->time_to_target_s || !of.time_to_target_s) return std::nullopt;
  const double seconds = of.time_to_target_s->median;
  if (!(seconds > 0)) return std::nullopt;
  return base->time_to_target_s->median / seconds;
}

}  // namespace longhaul::lab
