// Plans from a peer: what does not fit is an error and never an engine that cannot follow.
#include "longhaul/exchange/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST(PlanFrom, ReadsWhatWasWritten) {
  const Plan plan{.keep_ratio = 0.05, .delay_steps = 3, .merge = Merge::kLate};
  EXPECT_EQ(plan_from(to_message(plan)).value(), plan);
}

TEST(PlanFrom, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(plan_from(to_message({.keep_ratio = 0})).error().message, HasSubstr("out of range"));
  EXPECT_THAT(plan_from(to_message({.period_steps = 0})).error().message,
              HasSubstr("out of range"));
}

TEST(PlanFrom, RefusesLocalSteps) {
  for (const Merge merge : {Merge::kOptimizer, Merge::kLate, Merge::kOuter, Merge::kAnchor}) {
    EXPECT_THAT(plan_from(to_message({.period_steps = 2, .merge = merge})).error().message,
                HasSubstr("a plan with a period of 2"));
  }
  for (const Merge merge : {Merge::kOuter, Merge::kAnchor})
    EXPECT_FALSE(plan_from(to_message({.merge = merge})).ok());
}

}  // namespace
}  // namespace longhaul
