// Measures a replica's work for a step: the gradient, its own step, compressing and merging.
// Waiting for means does not count. Nothing hides any of it.
#pragma once

#include <algorithm>
#include <chrono>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"

namespace longhaul {

class WorkTimer {
 public:
  void begin(TimePoint now) {
    begin_ = now - after_;
    after_ = {};
  }
  // When the gradient of a machine with that pace would be there.
  [[nodiscard]] TimePoint due(Seconds pace) const { return time_after(begin_, pace); }
  void has_gradient(TimePoint now) { gradient_at_ = now; }
  [[nodiscard]] Seconds computing() const { return gradient_at_ - begin_; }
  void end(TimePoint now, Seconds waiting) {
    const auto waited = std::chrono::duration_cast<TimePoint::duration>(waiting);
    after_ = std::max(TimePoint::duration{}, now - gradient_at_ - waited);
  }

 private:
  TimePoint begin_;
  TimePoint gradient_at_;
  TimePoint::duration after_{};  // the gradient of the last step
};

}  // namespace longhaul
