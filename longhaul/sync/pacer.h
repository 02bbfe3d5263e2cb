// Waits out the rest of a step, so that a fast machine stands in for a slower one.
#pragma once

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

class Pacer {
 public:
  // Returns when it is time, or when someone interrupts.
  void wait_until(Deadline time) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    (void)wake_.wait_until(mutex_, time, [this]() REQUIRES(mutex_) { return is_interrupted_; });
  }
  void interrupt() EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      is_interrupted_ = true;
    }
    wake_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar wake_;
  bool is_interrupted_ GUARDED_BY(mutex_) = false;
};

}  // namespace longhaul
