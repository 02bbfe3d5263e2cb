#include "longhaul/transport/lane_count.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

PathFacts path(double mbit, double round_trip_ms, double transfer_mb = 32) {
  return {.rate = Bandwidth::from_bits_per_second(mbit * 1e6),
          .round_trip = Seconds(round_trip_ms / 1e3),
          .transfer_bytes = transfer_mb * 1e6};
}

TEST(LaneCount, GrowsWithWhatIsOnTheWay) {
  EXPECT_EQ(lanes_for(path(10'000, 0.2)), 1U) << "one room";
  EXPECT_EQ(lanes_for(path(50, 300)), 2U);
  EXPECT_EQ(lanes_for(path(200, 200)), 5U);
  EXPECT_EQ(lanes_for(path(1000, 100)), 12U);
  EXPECT_EQ(lanes_for(path(10'000, 300)), kMostAutomaticLanes);
}

TEST(LaneCount, SmallTransfersNeedOne) {
  EXPECT_EQ(lanes_for(path(1000, 100, 0.5)), 1U);
  EXPECT_EQ(lanes_for(path(1000, 100, 3)), 3U);
}

TEST(LaneCount, IsOneWhileNothingIsKnown) { EXPECT_EQ(lanes_for({}), 1U); }

// 4 MiB on the way of each lane, whatever the path could carry: asked again and again, it comes to
// the number that is needed.
TEST(LaneCount, FindsItsWayOutOfALaneThatHoldsTheRateDown) {
  constexpr double kBuffer = 4 << 20;
  const PathFacts whole = path(400, 300);
  std::size_t lanes = 1;
  for (int i = 0; i < 5; ++i) {
    PathFacts seen = whole;
    seen.rate.bytes_per_second =
        std::min(whole.rate.bytes_per_second,
                 static_cast<double>(lanes) * kBuffer / whole.round_trip.count());
    lanes = std::max(lanes, lanes_for(seen));
  }
  EXPECT_GE(static_cast<double>(lanes) * kBuffer,
            whole.rate.bytes_per_second * whole.round_trip.count());
}

}  // namespace
}  // namespace longhaul
