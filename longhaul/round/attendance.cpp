#include "longhaul/round/attendance.h"

#include <algorithm>
#include <iterator>

namespace longhaul {

void Attendance::sit_out(std::uint64_t step) {
  if (!sat_out.empty() && step <= sat_out.back().last + 1) {
    sat_out.back().last = std::max(sat_out.back().last, step);
    return;
  }
  sat_out.push_back({.first = step, .last = step});
  if (sat_out.size() <= kMostRanges) return;
  since = sat_out.front().last + 1;
  sat_out.erase(sat_out.begin());
}

bool Attendance::has(std::uint64_t step) const {
  return step >= since && std::ranges::none_of(sat_out, [&](const StepRange& range) {
           return range.first <= step && step <= range.last;
         });
}

Attendance Attendance::until(std::uint64_t step) const {
  Attendance then{.since = std::min(since, step)};
  std::ranges::copy_if(sat_out, std::back_inserter(then.sat_out),
                       [&](const StepRange& range) { return range.last < step; });
  return then;
}

bool Attendance::can_be_of(std::uint64_t step) const {
  if (since > step || sat_out.size() > kMostRanges) return false;
  std::uint64_t next = since;
  for (const StepRange& range : sat_out) {
    if (range.first < next || range.last < range.first || range.last >= step) return false;
    next = range.last + 2;
  }
  return true;
}

}  // namespace longhaul
