#include "longhaul/round/attendance.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace longhaul {
namespace {

TEST(Attendance, TellsEveryStepThatWasSatOut) {
  std::mt19937_64 random(5);
  Attendance attendance{.since = 10};
  std::set<std::uint64_t> sat_out;
  for (std::uint64_t step = 10; step < 200; ++step) {
    if (random() % 3 != 0) continue;
    attendance.sit_out(step);
    attendance.sit_out(step);  // asked again
    sat_out.insert(step);
  }
  for (std::uint64_t step = 10; step < 200; ++step)
    EXPECT_EQ(attendance.has(step), !sat_out.contains(step)) << step;
  EXPECT_FALSE(attendance.has(9)) << "nothing is known of it";
  EXPECT_TRUE(attendance.can_be_of(200));
}

TEST(Attendance, ForgetsWhatIsLongPast) {
  Attendance attendance;
  for (std::uint64_t i = 0; i <= Attendance::kMostRanges; ++i) attendance.sit_out(10 * i);
  EXPECT_EQ(attendance.sat_out.size(), Attendance::kMostRanges);
  EXPECT_EQ(attendance.since, 1U);
  EXPECT_FALSE(attendance.has(0));
  EXPECT_TRUE(attendance.has(1));
  EXPECT_FALSE(attendance.has(10));
  EXPECT_TRUE(attendance.can_be_of(10 * Attendance::kMostRanges + 1));
}

TEST(Attendance, KnowsHowItWasEarlier) {
  Attendance attendance{.since = 3};
  attendance.sit_out(5);
  const Attendance then = attendance;
  attendance.sit_out(8);
  EXPECT_EQ(attendance.until(7), then);
  EXPECT_EQ(attendance.until(9), attendance);
  EXPECT_EQ(attendance.until(2), Attendance{.since = 2});
}

TEST(Attendance, DoubtsWhatIsToldOfIt) {
  const auto can_be = [](std::uint64_t since, std::vector<StepRange> sat_out) {
    return Attendance{.since = since, .sat_out = std::move(sat_out)}.can_be_of(20);
  };
  EXPECT_TRUE(can_be(0, {}));
  EXPECT_TRUE(can_be(20, {}));
  EXPECT_TRUE(can_be(5, {{5, 6}, {8, 19}}));
  EXPECT_FALSE(can_be(21, {}));
  EXPECT_FALSE(can_be(5, {{4, 6}}));
  EXPECT_FALSE(can_be(5, {{7, 6}}));
  EXPECT_FALSE(can_be(5, {{6, 7}, {8, 9}})) << "one range";
  EXPECT_FALSE(can_be(5, {{10, 11}, {6, 7}}));
  EXPECT_FALSE(can_be(5, {{6, 20}})) << "it has an update of that step";
  std::vector<StepRange> many;
  for (std::uint64_t i = 0; i <= Attendance::kMostRanges; ++i) many.push_back({2 * i, 2 * i});
  EXPECT_FALSE((Attendance{.since = 0, .sat_out = many}.can_be_of(1000)));
}

}  // namespace
}  // namespace longhaul
