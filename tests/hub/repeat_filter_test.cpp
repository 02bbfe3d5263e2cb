#include "longhaul/hub/repeat_filter.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(RepeatFilter, TellsTheFirstOfAKindAtOnceAndTheRestOnceInAWhile) {
  RepeatFilter filter;
  TimePoint now = time_after(TimePoint{}, Seconds(100));
  EXPECT_EQ(filter.line_for("a: wrong token", now), "a: wrong token");
  EXPECT_EQ(filter.line_for("b: wrong token", now), "b: wrong token");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(filter.line_for("a: wrong token", now), std::nullopt);
  now = time_after(now, Seconds(61));
  EXPECT_EQ(filter.line_for("a: wrong token", now), "a: wrong token (1001 more times)");
  EXPECT_EQ(filter.line_for("a: wrong token", now), std::nullopt);
}

TEST(RepeatFilter, OneWhoInventsANewKindEachTimeFillsNeitherTheLogNorTheMemory) {
  RepeatFilter filter;
  const TimePoint now = time_after(TimePoint{}, Seconds(100));
  std::size_t lines = 0;
  for (int i = 0; i < 10'000; ++i)
    lines += filter.line_for("kind " + std::to_string(i), now).has_value() ? 1 : 0;
  EXPECT_LT(lines, 300U);
  EXPECT_LT(filter.kinds(), 300U);
  const TimePoint later = time_after(now, Seconds(61));
  EXPECT_TRUE(filter.line_for("a new kind", later));
}

}  // namespace
}  // namespace longhaul
