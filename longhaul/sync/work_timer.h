// How a replica spends its time. Its work for a step is the gradient, its own step, compressing and
// merging: nothing hides any of it. Waiting for means is counted beside it, over whole periods:
// within one only some steps wait.
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
  // A wait for a mean inside the work is none of it.
  void leave_out(Seconds waiting) {
    begin_ += std::chrono::duration_cast<TimePoint::duration>(waiting);
  }
  // When the gradient of a machine with that pace would be there.
  [[nodiscard]] TimePoint due(Seconds pace) const { return time_after(begin_, pace); }
  void has_gradient(TimePoint now) { gradient_at_ = now; }
  [[nodiscard]] Seconds computing() const { return gradient_at_ - begin_; }
  void end(TimePoint now, Seconds waiting) {
    const auto waited = std::chrono::duration_cast<TimePoint::duration>(waiting);
    after_ = std::max(TimePoint::duration{}, now - gradient_at_ - waited);
  }

  // The next step does not pay for the last one.
  void forget_last() { after_ = {}; }

  // A step has been done.
  void count(Seconds computing, Seconds waiting, int period_steps) {
    computing_ += computing;
    waiting_ += waiting;
    if (++steps_ < period_steps) return;
    const Seconds all = computing_ + waiting_;
    if (all.count() > 0) waiting_share_ = waiting_ / all;
    computing_ = waiting_ = Seconds(0);
    steps_ = 0;
  }
  // The share of waiting in the last period that has ended.
  [[nodiscard]] double waiting_share() const { return waiting_share_; }

 private:
  TimePoint begin_;
  TimePoint gradient_at_;
  TimePoint::duration after_{};  // the gradient of the last step
  double waiting_share_ = 0;
  // Since the period began.
  int steps_ = 0;
  Seconds computing_{};
  Seconds waiting_{};
};

}  // namespace longhaul
