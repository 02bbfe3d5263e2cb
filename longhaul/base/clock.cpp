#include "longhaul/base/clock.h"

#include <cmath>

#include "longhaul/base/check.h"

namespace longhaul {

TimePoint time_after(TimePoint start, Seconds wait) {
  LONGHAUL_CHECK(start >= TimePoint{});
  LONGHAUL_CHECK(!std::isnan(wait.count()));
  if (wait <= Seconds(0)) return start;
  // A double is off by microseconds this far out, so the last hour of the clock counts as its end.
  const Seconds left = Seconds(TimePoint::max() - start) - std::chrono::hours(1);
  if (wait >= left) return TimePoint::max();
  return start + std::chrono::round<TimePoint::duration>(wait);
}

Deadline deadline_after(Seconds wait) { return time_after(std::chrono::steady_clock::now(), wait); }

}  // namespace longhaul
