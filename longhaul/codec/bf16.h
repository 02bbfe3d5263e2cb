// bfloat16: the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace longhaul {

inline constexpr std::uint32_t kMagnitudeMask = 0x7FFFFFFFU;
inline constexpr std::uint32_t kInfinityBits = 0x7F800000U;
inline constexpr std::uint32_t kLargestBf16 = 0x7F7FU;

constexpr std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & kMagnitudeMask;
}

// Rounds to nearest even. A finite value saturates at the largest bf16, infinities stay, a NaN
// stays a NaN.
constexpr std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kMagnitudeMask;
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  if (magnitude >= kInfinityBits) {
    return static_cast<std::uint16_t>(sign | (magnitude >> 16) |
                                      (magnitude > kInfinityBits ? 0x40U : 0U));
  }
  const std::uint32_t rounded = (magnitude + 0x7FFFU + ((magnitude >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>(sign | (rounded < kLargestBf16 ? rounded : kLargestBf16));
}

constexpr float float_from_bf16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

}  // namespace longhaul
