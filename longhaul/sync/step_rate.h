// How many steps a second a run does, over the last half minute.
#pragma once

#include <cstdint>
#include <map>

#include "longhaul/base/clock.h"

namespace longhaul {

class StepRate {
 public:
  // Times and steps ascend. A number of steps below the last one begins anew.
  void add(TimePoint now, std::uint64_t steps);
  // 0: not known yet.
  [[nodiscard]] double per_second() const;
  // The time for so many steps at that rate; 0: not known, or none.
  [[nodiscard]] Seconds time_for(std::uint64_t steps) const;

 private:
  std::map<TimePoint, std::uint64_t> marks_;  // steps by time, about one a second
  TimePoint last_time_;
  std::uint64_t last_steps_ = 0;
};

}  // namespace longhaul
