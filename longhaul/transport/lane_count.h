// How many connections a path needs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "longhaul/base/units.h"

namespace longhaul {

// A connection has only so many bytes on the way: what the systems at its ends hold for it (Linux:
// 4 MiB for one that sends, of which about half are packets), and after a lost packet half of that.
// So every lane is to have no more than this.
inline constexpr double kBytesOnTheWayOfALane = 1 << 20;
inline constexpr std::size_t kMostAutomaticLanes = 16;

// `rate` of transfers with the lanes that there are, the least round trip, and the bytes of the
// largest transfer: a small one fits into one lane.
//
// Also where lanes hold the rate down: then each has as much on the way as it can, which is more
// than it should have, and the answer is more lanes than there are.
inline std::size_t lanes_for(Bandwidth rate, Seconds round_trip, double transfer_bytes) {
  const double on_the_way = std::min(rate.bytes_per_second * round_trip.count(), transfer_bytes);
  const double lanes = std::ceil(on_the_way / kBytesOnTheWayOfALane);
  return static_cast<std::size_t>(std::clamp(lanes, 1.0, static_cast<double>(kMostAutomaticLanes)));
}

}  // namespace longhaul
