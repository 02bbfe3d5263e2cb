#include "longhaul/base/repeat_filter.h"

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

TEST(RepeatFilter, AFewLinesOfAKindAMinuteAndTheNumberOfTheOthers) {
  RepeatFilter filter;
  TimePoint now = time_after(TimePoint{}, Seconds(100));
  std::size_t lines = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string line = "plan " + std::to_string(i);
    lines += filter.line_of_kind("plan", line, 3, now).has_value() ? 1 : 0;
  }
  EXPECT_EQ(lines, 3U);
  EXPECT_EQ(filter.line_of_kind("link", "lost", 3, now), "lost");
  now = time_after(now, Seconds(61));
  EXPECT_EQ(filter.line_of_kind("plan", "plan a", 3, now), "plan a (997 more like this before)");
  EXPECT_EQ(filter.line_of_kind("plan", "plan b", 3, now), "plan b");
}

TEST(RepeatFilter, TwiceInTwoMinutesIsToldTwice) {
  RepeatFilter filter;
  const TimePoint now = time_after(TimePoint{}, Seconds(100));
  EXPECT_EQ(filter.line_for("a", now), "a");
  EXPECT_EQ(filter.line_for("a", time_after(now, Seconds(61))), "a");
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
