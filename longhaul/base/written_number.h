// Numbers as people write them, apart from their unit: digits, a fraction, a decimal exponent.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace longhaul {

// One number and the unit that follows it. `whole` and `fraction` are digits only; the value is
// whole.fraction × 10^exponent.
struct WrittenNumber {
  std::string_view text;
  std::string_view whole;
  std::string_view fraction;
  int exponent = 0;
  std::string_view unit;
};

// Nothing where `text` does not begin with a number. Spaces between number and unit are skipped.
std::optional<WrittenNumber> split_number(std::string_view text);

std::optional<double> to_double(const WrittenNumber& number);

// The number times `multiply`, in integer arithmetic: every count up to 2^64 - 1 is exact. Nothing
// where it does not fit, or is not whole.
std::optional<std::uint64_t> scale_exactly(const WrittenNumber& number, std::uint64_t multiply);
// The same, rounded to the nearest whole number.
std::optional<std::uint64_t> scale_rounded(const WrittenNumber& number, std::uint64_t multiply);

}  // namespace longhaul
