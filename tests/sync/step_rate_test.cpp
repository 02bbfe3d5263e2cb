#include "longhaul/sync/step_rate.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TimePoint at(double seconds) { return time_after(TimePoint{}, Seconds(100 + seconds)); }

TEST(StepRate, IsNotKnownBeforeTimeHasPassed) {
  StepRate rate;
  EXPECT_EQ(rate.per_second(), 0);
  EXPECT_EQ(rate.time_for(10), Seconds(0));
  rate.add(at(0), 5);
  EXPECT_EQ(rate.per_second(), 0);
}

TEST(StepRate, CountsStepsAfterTheFirstMark) {
  StepRate rate;
  rate.add(at(0), 100);
  rate.add(at(0.5), 110);
  EXPECT_DOUBLE_EQ(rate.per_second(), 20);
  EXPECT_DOUBLE_EQ(rate.time_for(40).count(), 2);
}

TEST(StepRate, ForgetsWhatIsOlderThanHalfAMinute) {
  StepRate rate;
  for (unsigned second = 0; second <= 60; ++second) rate.add(at(second), 10 * second);
  for (int second = 61; second <= 95; ++second) rate.add(at(second), 600);
  EXPECT_DOUBLE_EQ(rate.per_second(), 0);
}

TEST(StepRate, BeginsAnewWhereStepsGoBack) {
  StepRate rate;
  rate.add(at(0), 0);
  rate.add(at(10), 1000);
  rate.add(at(11), 500);
  EXPECT_EQ(rate.per_second(), 0);
  rate.add(at(12), 503);
  EXPECT_DOUBLE_EQ(rate.per_second(), 3);
}

}  // namespace
}  // namespace longhaul
