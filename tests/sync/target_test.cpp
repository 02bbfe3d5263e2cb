#include "longhaul/sync/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace longhaul {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// One evaluation every 10 steps of 2 s.
std::vector<EvalPoint> accuracies(std::initializer_list<double> values) {
  std::vector<EvalPoint> points;
  for (const double value : values) {
    const std::size_t step = 10 * (points.size() + 1);
    points.push_back({.step = step,
                      .time = 2.0 * static_cast<double>(step) * Seconds(1),
                      .loss = 1 - value,
                      .accuracy = value});
  }
  return points;
}

const TargetOptions kAccuracy{.metric = Metric::kAccuracy, .value = 0.8};
const TargetOptions kLoss{.metric = Metric::kLoss, .value = 0.2};

TEST(SmoothedMetric, IsTheMeanOfThree) {
  EXPECT_THAT(smoothed_metric(kAccuracy, accuracies({0.3, 0.6, 0.9, 1.2})),
              ElementsAre(DoubleEq(0.6), DoubleEq(0.9)));
  EXPECT_THAT(smoothed_metric(kAccuracy, accuracies({0.3, 0.6})), IsEmpty());
}

TEST(TargetReached, NeedsTheMeanOfThreeNotOneGoodValue) {
  EXPECT_FALSE(target_reached(kAccuracy, accuracies({0.1, 0.1, 0.99, 0.1, 0.1})));
}

TEST(TargetReached, LiesBetweenTheMeansAroundIt) {
  // Means 0.6 at step 30 and 0.9 at step 40: 0.8 is two thirds of the way.
  const auto reached = target_reached(kAccuracy, accuracies({0.3, 0.6, 0.9, 1.2}));
  ASSERT_TRUE(reached);
  EXPECT_NEAR(reached->step, 30 + 10 * 2.0 / 3, 1e-9);
  EXPECT_NEAR(reached->time.count(), 2 * (30 + 10 * 2.0 / 3), 1e-9);
}

TEST(TargetReached, OfALossIsReachedFromAbove) {
  const auto reached = target_reached(kLoss, accuracies({0.3, 0.6, 0.9, 1.2}));
  ASSERT_TRUE(reached);
  EXPECT_NEAR(reached->step, 30 + 10 * 2.0 / 3, 1e-9);
}

TEST(TargetReached, AtTheFirstMeanNeedsNoneBefore) {
  const auto reached = target_reached(kAccuracy, accuracies({0.9, 0.9, 0.9}));
  ASSERT_TRUE(reached);
  EXPECT_EQ(reached->step, 30);
}

TEST(TargetReached, TakesTheFirstOfSeveralTimes) {
  const auto reached =
      target_reached(kAccuracy, accuracies({0.8, 0.8, 0.8, 0.1, 0.1, 0.9, 0.9, 0.9}));
  ASSERT_TRUE(reached);
  EXPECT_EQ(reached->step, 30);
}

TEST(TargetReached, NumbersThatAreNoneNeverReachIt) {
  EXPECT_FALSE(target_reached(kLoss, accuracies({kNotANumber, kNotANumber, kNotANumber})));
  const auto later = target_reached(kAccuracy, accuracies({kNotANumber, 0.9, 0.9, 0.9}));
  ASSERT_TRUE(later);
  EXPECT_EQ(later->step, 40) << "nothing to interpolate from";
}

}  // namespace
}  // namespace longhaul
