#include "longhaul/plan/fall_risk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace longhaul {
namespace {

// The factor after so many rounds, by the slowest link's rate in each.
double after(int rounds, const std::function<double(int)>& rate_at) {
  FallRisk risk;
  for (int round = 0; round < rounds; ++round) {
    const Bandwidth rate{.bytes_per_second = rate_at(round)};
    const Bandwidth faster{.bytes_per_second = 1e9};
    risk.note({{.up = faster, .down = rate}, {.up = faster, .down = faster}});
  }
  return risk.factor();
}

TEST(FallRisk, IsThreeWhileNothingIsKnown) {
  EXPECT_NEAR(FallRisk().factor(), 3, 1e-3);
  FallRisk risk;
  risk.note({});
  EXPECT_NEAR(risk.factor(), 3, 1e-3);
}

TEST(FallRisk, IsForgottenOnALinkThatStaysAsItIs) {
  const auto constant = [](int) { return 1e6; };
  EXPECT_GT(after(10, constant), 2.4);
  EXPECT_LT(after(100, constant), 1.5);
  EXPECT_LT(after(1000, constant), 1.001);
}

TEST(FallRisk, IsWhatALinkShows) {
  const auto square = [](double ratio) {
    return [ratio](int round) { return round % 100 < 50 ? 1e6 : 1e6 / ratio; };
  };
  // Half of the time each, so a distance of half of the whole change.
  EXPECT_NEAR(after(2000, square(2)), std::sqrt(2), 0.1);
  EXPECT_NEAR(after(2000, square(6)), std::sqrt(6), 0.4);
  EXPECT_LE(after(2000, square(1e6)), 3.001) << "but never more than three";
}

TEST(FallRisk, ReturnsWithAFall) {
  const double before = after(300, [](int) { return 1e6; });
  const double then = after(330, [](int round) { return round < 300 ? 1e6 : 1e5; });
  EXPECT_GT(then, before + 0.15);
}

}  // namespace
}  // namespace longhaul
