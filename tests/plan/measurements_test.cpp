#include "longhaul/plan/measurements.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(StepTimer, KnowsNothingBeforeTheFirstStep) { EXPECT_EQ(StepTimer().typical(), Seconds(0)); }

TEST(StepTimer, ASlowStepNowAndThenChangesNothing) {
  StepTimer timer;
  for (int step = 0; step < 100; ++step) {
    timer.add(Seconds(step % 3 == 1 ? 5.0 : 0.06));
    EXPECT_EQ(timer.typical(), Seconds(0.06)) << step;
  }
}

TEST(StepTimer, FollowsAMachineThatHasBecomeSlowerInFourSteps) {
  StepTimer timer;
  for (int step = 0; step < 100; ++step) timer.add(Seconds(0.06));
  for (int step = 0; step < 4; ++step) timer.add(Seconds(0.2));
  EXPECT_EQ(timer.typical(), Seconds(0.2));
  for (int step = 0; step < 4; ++step) timer.add(Seconds(0.05));
  EXPECT_EQ(timer.typical(), Seconds(0.05));
}

// A machine that does something else for 30 ms now and then, in steps of a quarter of a
// millisecond.
TEST(StepTimer, KnowsAMachineByMoreThanSevenShortSteps) {
  StepTimer timer;
  for (int step = 1; step < 4000; ++step) {
    const double usual = step % 20 < 10 ? 0.0002 : 0.0003;
    timer.add(Seconds(step % 700 == 0 ? 0.03 : usual));
    ASSERT_NEAR(timer.typical().count(), 0.00025, step > 50 ? 0.00002 : 0.0001) << step;
  }
}

TEST(StepTimer, KnowsSomethingAfterTheFirstStepHoweverShort) {
  StepTimer timer;
  timer.add(Seconds(0.001));
  EXPECT_EQ(timer.typical(), Seconds(0.001));
}

}  // namespace
}  // namespace longhaul
