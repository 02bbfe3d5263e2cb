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

}  // namespace
}  // namespace longhaul
