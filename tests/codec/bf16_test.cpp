#include "longhaul/codec/bf16.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

namespace longhaul {
namespace {

TEST(Bf16, ReadsBackEveryFiniteNumberItCanHold) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7F80U) == 0x7F80U) continue;
    ASSERT_EQ(bf16_from_float(float_from_bf16(half)), half);
  }
}

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(float_from_bf16(bf16_from_float(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(float_from_bf16(bf16_from_float(1.0F + 0x1.8p-7F)), 1.0F + 0x1p-6F);
  EXPECT_EQ(float_from_bf16(bf16_from_float(std::nextafter(1.0F + 0x1p-8F, 2.0F))), 1.0F + 0x1p-7F);
}

TEST(Bf16, SaturatesFiniteNumbersAndKeepsTheRest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(bf16_from_float(FLT_MAX), kLargestBf16);
  EXPECT_EQ(bf16_from_float(-FLT_MAX), 0x8000U | kLargestBf16);
  EXPECT_EQ(float_from_bf16(bf16_from_float(-kInfinity)), -kInfinity);
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace
}  // namespace longhaul
