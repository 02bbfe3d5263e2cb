// Time as an input: code that decides by time takes a Clock, so that tests and the lab can say what
// time it is.
#pragma once

#include <chrono>

#include "longhaul/base/units.h"

namespace longhaul {

using TimePoint = std::chrono::steady_clock::time_point;

// The end of a blocking wait. Condition variables wait in real time, so a Deadline is a point on
// the real steady clock; code that runs on another clock decides, and does not block.
using Deadline = TimePoint;

// The machine's steady clock. Tests and the lab derive clocks of their own.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  // Never goes back. Callable from every thread.
  [[nodiscard]] virtual TimePoint now() const { return std::chrono::steady_clock::now(); }
};

// `start` plus `wait`, or TimePoint::max() where that lies beyond what the clock can count. A
// negative wait is none. Preconditions: `start` is not before TimePoint{}, `wait` is not NaN.
TimePoint time_after(TimePoint start, Seconds wait);

// The deadline of a wait that starts now, in real time.
Deadline deadline_after(Seconds wait);

}  // namespace longhaul
