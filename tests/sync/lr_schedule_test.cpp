// Learning rates at the points that matter.
#include "longhaul/sync/lr_schedule.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(LrSchedule, ConstantStaysAtThePeak) {
  const LrSchedule lr{.peak = 0.3, .steps = 10};
  for (const std::size_t step : {0U, 5U, 9U, 10U, 1000U}) EXPECT_DOUBLE_EQ(lr.at(step), 0.3);
}

TEST(LrSchedule, WarmUpRisesLinearlyAndNeverStartsAtZero) {
  for (const LrShape shape : {LrShape::kConstant, LrShape::kCosine}) {
    const LrSchedule lr{.peak = 0.8, .shape = shape, .warmup_steps = 4, .steps = 100};
    EXPECT_DOUBLE_EQ(lr.at(0), 0.2);
    EXPECT_DOUBLE_EQ(lr.at(1), 0.4);
    EXPECT_DOUBLE_EQ(lr.at(3), 0.8);
    EXPECT_DOUBLE_EQ(lr.at(4), 0.8);
  }
}

TEST(LrSchedule, CosineFallsToATenthAndStaysThere) {
  const LrSchedule lr{.peak = 2, .shape = LrShape::kCosine, .warmup_steps = 10, .steps = 110};
  EXPECT_DOUBLE_EQ(lr.at(10), 2);
  EXPECT_NEAR(lr.at(60), 1.1, 1e-12);  // half-way, in the middle between 2 and 0.2
  EXPECT_NEAR(lr.at(110), 0.2, 1e-12);
  EXPECT_NEAR(lr.at(100'000), 0.2, 1e-12);
  for (std::size_t step = 10; step < 110; ++step) EXPECT_GT(lr.at(step), lr.at(step + 1));
}

TEST(LrSchedule, ARunShorterThanItsWarmUpHasNoFall) {
  const LrSchedule lr{.peak = 1, .shape = LrShape::kCosine, .warmup_steps = 8, .steps = 8};
  EXPECT_DOUBLE_EQ(lr.at(7), 1);
  EXPECT_DOUBLE_EQ(lr.at(8), 1);
}

}  // namespace
}  // namespace longhaul
