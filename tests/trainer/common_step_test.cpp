#include "trainer/common_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::trainer {
namespace {

using ::testing::HasSubstr;

TEST(NewestCommonStep, IsTheNewestThatAllHave) {
  EXPECT_EQ(*newest_common_step({{20, 10}, {20, 10}}), 20U);
  EXPECT_EQ(*newest_common_step({{20, 10}, {10}}), 10U);
  EXPECT_EQ(*newest_common_step({{20, 10}, {30, 20}, {20, 10}}), 20U);
}

TEST(NewestCommonStep, IsTheBeginningBeforeAllHaveTheirFirst) {
  EXPECT_EQ(*newest_common_step({{}, {}}), 0U);
  EXPECT_EQ(*newest_common_step({{10}, {}}), 0U);
}

TEST(NewestCommonStep, SaysWhoseFilesAreMissing) {
  const Result<std::uint64_t> step = newest_common_step({{20, 10}, {}});
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.error().message, HasSubstr("rank 0 has 20 10, rank 1 has none."));
}

}  // namespace
}  // namespace longhaul::trainer
