// A clock that tests set.
#pragma once

#include <atomic>

#include "longhaul/base/check.h"
#include "longhaul/base/clock.h"

namespace longhaul {

// Stands still at TimePoint{} until it is told to advance.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }

  // Precondition: `by` is not negative.
  void advance(Seconds by) {
    LONGHAUL_CHECK(by.count() >= 0);
    now_ = time_after(now_, by);
  }

 private:
  std::atomic<TimePoint> now_{TimePoint{}};
};

}  // namespace longhaul
