// How much of its time a replica waits for means, over whole periods: within one only some steps
// wait.
#pragma once

#include "longhaul/base/units.h"

namespace longhaul {

class WaitingShare {
 public:
  // A step has been done.
  void add(Seconds computing, Seconds waiting, int period_steps) {
    computing_ += computing;
    waiting_ += waiting;
    if (++steps_ < period_steps) return;
    const Seconds all = computing_ + waiting_;
    if (all.count() > 0) share_ = waiting_ / all;
    computing_ = waiting_ = Seconds(0);
    steps_ = 0;
  }
  // The share in the last period that has ended.
  [[nodiscard]] double share() const { return share_; }

 private:
  double share_ = 0;
  int steps_ = 0;
  Seconds computing_{};
  Seconds waiting_{};
};

}  // namespace longhaul
