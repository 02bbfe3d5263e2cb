#include "longhaul/sync/step_rate.h"

#include <iterator>

namespace longhaul {
namespace {

constexpr Seconds kWindow{30.0};
constexpr Seconds kBetweenMarks{1.0};

}  // namespace

void StepRate::add(TimePoint now, std::uint64_t steps) {
  if (!marks_.empty() && steps < last_steps_) marks_.clear();
  last_time_ = now;
  last_steps_ = steps;
  if (marks_.empty() || now - marks_.rbegin()->first >= kBetweenMarks) marks_.emplace(now, steps);
  while (marks_.size() > 2 && now - std::next(marks_.begin())->first >= kWindow)
    marks_.erase(marks_.begin());
}

double StepRate::per_second() const {
  if (marks_.empty()) return 0;
  const auto& [first_time, first_steps] = *marks_.begin();
  const Seconds time = last_time_ - first_time;
  if (time.count() <= 0) return 0;
  return static_cast<double>(last_steps_ - first_steps) / time.count();
}

Seconds StepRate::time_for(std::uint64_t steps) const {
  const double rate = per_second();
  return rate > 0 ? Seconds(static_cast<double>(steps) / rate) : Seconds(0);
}

}  // namespace longhaul
