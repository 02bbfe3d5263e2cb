#include "longhaul/transport/lane_count.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

std::size_t lanes_of(double mbit, double round_trip_ms, double transfer_mb = 32) {
  return lanes_for(Bandwidth::from_bits_per_second(mbit * 1e6), Seconds(round_trip_ms / 1e3),
                   transfer_mb * 1e6);
}

TEST(LaneCount, GrowsWithWhatIsOnTheWay) {
  EXPECT_EQ(lanes_of(10'000, 0.2), 1U) << "one room";
  EXPECT_EQ(lanes_of(50, 300), 2U);
  EXPECT_EQ(lanes_of(200, 200), 5U);
  EXPECT_EQ(lanes_of(1000, 100), 12U);
  EXPECT_EQ(lanes_of(10'000, 300), kMostAutomaticLanes);
}

TEST(LaneCount, SmallTransfersNeedOne) {
  EXPECT_EQ(lanes_of(1000, 100, 0.5), 1U);
  EXPECT_EQ(lanes_of(1000, 100, 3), 3U);
}

TEST(LaneCount, IsOneWhileNothingIsKnown) { EXPECT_EQ(lanes_for({}, {}, 0), 1U); }

// 4 MiB on the way of each lane, whatever the path could carry: asked again and again, it comes to
// the number that is needed.
TEST(LaneCount, FindsItsWayOutOfALaneThatHoldsTheRateDown) {
  constexpr double kBuffer = 4 << 20;
  const Bandwidth whole = Bandwidth::from_bits_per_second(400e6);
  const Seconds round_trip(0.3);
  std::size_t lanes = 1;
  for (int i = 0; i < 5; ++i) {
    const Bandwidth seen{.bytes_per_second =
                             std::min(whole.bytes_per_second,
                                      static_cast<double>(lanes) * kBuffer / round_trip.count())};
    lanes = std::max(lanes, lanes_for(seen, round_trip, 32e6));
  }
  EXPECT_GE(static_cast<double>(lanes) * kBuffer, whole.bytes_per_second * round_trip.count());
}

}  // namespace
}  // namespace longhaul
