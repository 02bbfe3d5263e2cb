// Quantities with their units in the type, and how people write them: 20mbit, 200ms, 64KiB, 25M,
// 1/64.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace longhaul {

using Seconds = std::chrono::duration<double>;

struct Bandwidth {
  double bytes_per_second = 0;

  static constexpr Bandwidth from_bits_per_second(double bits) {
    return {.bytes_per_second = bits / 8};
  }
  [[nodiscard]] constexpr double bits_per_second() const { return bytes_per_second * 8; }
  auto operator<=>(const Bandwidth&) const = default;
};

// Parsers use the whole text or fail with kInvalidArgument and a message that names what was
// expected and what was got. A number is digits, with a fraction and a decimal exponent where
// wanted ("20", "1.5", "1e-3"): no sign, no hex, no inf or nan. Spaces may stand before the unit,
// which is required except for counts and ratios; its case counts only where b is bit and B byte.
Result<Seconds> parse_duration(std::string_view text);  // ns us ms s min h
Result<Bandwidth> parse_bandwidth(
    std::string_view text);  // 20mbit, 20Mbit/s, 20Mbps; 20MB/s, 20MBps; not 20mb or 20M
Result<std::uint64_t> parse_bytes(
    std::string_view text);  // B kB MB GB TB KiB MiB GiB TiB; to the nearest byte
Result<std::uint64_t> parse_count(
    std::string_view text);  // plain, k M B (thousand, million, billion); exact
Result<double> parse_ratio(std::string_view text);  // 0.01, 1/64 or 1%; from 0 to 1

// Four significant digits in the unit that reads best; the parsers above read it back. Not for
// negative values.
std::string to_string(Seconds duration);
std::string to_string(Bandwidth bandwidth);
std::string bytes_text(std::uint64_t bytes);

// A number in a short text, as printf has it: formatted("%.1f s", 2.5).
std::string formatted(const char* format, double value);

}  // namespace longhaul
