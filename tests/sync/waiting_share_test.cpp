#include "longhaul/sync/waiting_share.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(WaitingShare, IsThatOfTheLastStepWhereEveryStepHasARound) {
  WaitingShare waiting;
  waiting.add(Seconds(1), Seconds(3), 1);
  EXPECT_DOUBLE_EQ(waiting.share(), 0.75);
  waiting.add(Seconds(1), Seconds(0), 1);
  EXPECT_DOUBLE_EQ(waiting.share(), 0);
}

TEST(WaitingShare, IsThatOfTheLastWholePeriodInEachOfItsSteps) {
  WaitingShare waiting;
  for (int period = 0; period < 3; ++period) {
    for (int step = 0; step < 4; ++step) {
      EXPECT_DOUBLE_EQ(waiting.share(), period == 0 ? 0 : 0.75);
      waiting.add(Seconds(1), Seconds(step == 3 ? 12 : 0), 4);
    }
  }
}

TEST(WaitingShare, StaysWhatItWasWhereNothingTakesTime) {
  WaitingShare waiting;
  waiting.add(Seconds(1), Seconds(1), 1);
  waiting.add(Seconds(0), Seconds(0), 1);
  EXPECT_DOUBLE_EQ(waiting.share(), 0.5);
}

}  // namespace
}  // namespace longhaul
