#include "longhaul/exchange/closing.h"

#include <algorithm>

namespace longhaul {
namespace {

constexpr double kMinute = 60;
constexpr double kHour = 3600;

std::string about(Seconds time) {
  const double seconds = time.count();
  if (seconds < 2 * kMinute) return formatted("%.0f s", seconds);
  if (seconds < 2 * kHour) return formatted("%.0f min", seconds / kMinute);
  return formatted("%.1f h", seconds / kHour);
}

}  // namespace

std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : rows) {
    if (value.empty()) continue;
    text.append(name).append(width + 2 - name.size(), ' ').append(value).append("\n");
  }
  return text;
}

std::string evaluation_text(const Evaluation& evaluation) {
  return "accuracy " + formatted("%.2f", 100 * evaluation.accuracy) + " %, loss " +
         formatted("%.4g", evaluation.loss) + " (" + std::to_string(evaluation.samples) +
         " held-out samples)";
}

std::string pace_text(double steps_per_s, Seconds left) {
  if (steps_per_s <= 0) return {};
  std::string text = formatted("%.3g steps/s", steps_per_s);
  if (left.count() > 0) text += ", " + about(left) + " left";
  return text;
}

std::string ending_text(FinishCause cause, std::uint64_t done, std::uint64_t steps) {
  const std::string share = std::to_string(done) + " of " + std::to_string(steps) + " steps";
  switch (cause) {
    case FinishCause::kTarget:
      return "the target is reached, after " + share;
    case FinishCause::kStopped:
      return "stopped after " + share;
    case FinishCause::kSteps:
      break;
  }
  return "all " + std::to_string(done) + " steps are done";
}

std::string cause_name(FinishCause cause) {
  switch (cause) {
    case FinishCause::kTarget:
      return "target";
    case FinishCause::kStopped:
      return "stopped";
    case FinishCause::kSteps:
      break;
  }
  return "steps";
}

}  // namespace longhaul
