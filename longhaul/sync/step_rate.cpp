#include "longhaul/sync/step_rate.h"

namespace longhaul {
namespace {

constexpr Seconds kWindow{30.0};
constexpr Seconds kBetweenMarks{1.0};

}  // namespace

void StepRate::add(TimePoint now, std::uint64_t steps) {
  if (!marks_.empty() && steps < last_.steps) marks_.clear();
  last_ = {.time = now, .steps = steps};
  if (marks_.empty() || now - marks_.back().time >= kBetweenMarks) marks_.push_back(last_);
  while (marks_.size() > 2 && now - marks_[1].time >= kWindow) marks_.pop_front();
}

double StepRate::per_second() const {
  if (marks_.empty()) return 0;
  const Seconds time = last_.time - marks_.front().time;
  if (time.count() <= 0) return 0;
  return static_cast<double>(last_.steps - marks_.front().steps) / time.count();
}

Seconds StepRate::time_for(std::uint64_t steps) const {
  const double rate = per_second();
  return rate > 0 ? Seconds(static_cast<double>(steps) / rate) : Seconds(0);
}

}  // namespace longhaul
