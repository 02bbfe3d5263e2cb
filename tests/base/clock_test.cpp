#include "longhaul/base/clock.h"

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/base/fake_clock.h"

namespace longhaul {
namespace {

using namespace std::chrono_literals;

TEST(FakeClock, MovesOnlyWhenToldTo) {
  FakeClock clock;
  EXPECT_EQ(clock.now(), TimePoint{});
  clock.advance(200ms);
  clock.advance(Seconds(1.5));
  EXPECT_EQ(clock.now(), TimePoint{} + 1700ms);
}

TEST(FakeClock, RefusesToGoBack) {
  FakeClock clock;
  EXPECT_THROW(clock.advance(-1s), std::logic_error);
}

TEST(Clock, NeverGoesBack) {
  const Clock clock;
  const TimePoint before = clock.now();
  EXPECT_LE(before, clock.now());
}

TEST(TimeAfter, StopsAtTheEndOfTheClockInsteadOfOverflowing) {
  constexpr TimePoint kStart = TimePoint{} + 1s;
  EXPECT_EQ(time_after(kStart, Seconds(std::numeric_limits<double>::infinity())), TimePoint::max());
  EXPECT_EQ(time_after(kStart, Seconds(1e300)), TimePoint::max());
  EXPECT_EQ(time_after(kStart, TimePoint::max() - kStart), TimePoint::max());
  EXPECT_EQ(time_after(TimePoint::max(), 1s), TimePoint::max());
  EXPECT_EQ(time_after(TimePoint::max() - 1s, 2s), TimePoint::max());
}

TEST(TimeAfter, TakesANegativeWaitForNone) {
  EXPECT_EQ(time_after(TimePoint{} + 1s, -2s), TimePoint{} + 1s);
}

TEST(TimeAfter, RefusesAWaitThatIsNotANumber) {
  const Seconds wait(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THROW(time_after(TimePoint{}, wait), std::logic_error);
}

TEST(DeadlineAfter, LiesThatFarAhead) {
  const TimePoint before = std::chrono::steady_clock::now();
  const Deadline deadline = deadline_after(10s);
  EXPECT_GE(deadline, before + 10s);
  EXPECT_LE(deadline, std::chrono::steady_clock::now() + 10s);
}

}  // namespace
}  // namespace longhaul
