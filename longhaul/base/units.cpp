#include "longhaul/base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <system_error>

namespace longhaul {
namespace {

// A unit is multiply / divide base units. Both are whole, so that 200ms is 200/1000 s, correctly
// rounded.
struct Unit {
  std::string_view name;
  double multiply = 1;
  double divide = 1;
};

struct WholeUnit {
  std::string_view name;
  std::uint64_t multiply = 1;
};

// Printing takes the last unit that keeps the number at one or more, so the printed ones are in
// rising order.
constexpr std::array kDurationUnits = {
    Unit{.name = "ns", .divide = 1e9},   Unit{.name = "us", .divide = 1e6},
    Unit{.name = "ms", .divide = 1e3},   Unit{.name = "s"},
    Unit{.name = "min", .multiply = 60}, Unit{.name = "h", .multiply = 3600},
};
constexpr std::array kBitRateUnits = {
    Unit{.name = "bit", .divide = 8},
    Unit{.name = "kbit", .multiply = 1e3, .divide = 8},
    Unit{.name = "mbit", .multiply = 1e6, .divide = 8},
    Unit{.name = "gbit", .multiply = 1e9, .divide = 8},
    Unit{.name = "tbit", .multiply = 1e12, .divide = 8},
};
constexpr std::array kByteRateUnits = {
    Unit{.name = "B/s"},
    Unit{.name = "kB/s", .multiply = 1e3},
    Unit{.name = "MB/s", .multiply = 1e6},
    Unit{.name = "GB/s", .multiply = 1e9},
};
constexpr std::array kBinaryByteUnits = {
    WholeUnit{"B", 1},
    WholeUnit{"KiB", std::uint64_t{1} << 10},
    WholeUnit{"MiB", std::uint64_t{1} << 20},
    WholeUnit{"GiB", std::uint64_t{1} << 30},
    WholeUnit{"TiB", std::uint64_t{1} << 40},
};
constexpr std::array kDecimalByteUnits = {
    WholeUnit{"kB", 1'000},
    WholeUnit{"MB", 1'000'000},
    WholeUnit{"GB", 1'000'000'000},
    WholeUnit{"TB", 1'000'000'000'000},
};
constexpr std::array kCountUnits = {
    WholeUnit{"", 1},
    WholeUnit{"k", 1'000},
    WholeUnit{"M", 1'000'000},
    WholeUnit{"B", 1'000'000'000},
};
constexpr std::array kRatioUnits = {Unit{.name = ""}, Unit{.name = "%", .divide = 100}};

// One number and what follows it. `whole` and `fraction` are digits only; the value is
// whole.fraction × 10^exponent.
struct Number {
  std::string_view text;
  std::string_view whole;
  std::string_view fraction;
  int exponent = 0;
  std::string_view rest;
};

std::string_view take_digits(std::string_view& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// An exponent too large for int leaves `e…` in the rest, where no unit matches it.
void take_exponent(Number& number) {
  if (!number.rest.starts_with('e')) return;
  std::string_view rest = number.rest.substr(1);
  const bool is_negative = rest.starts_with('-');
  if (is_negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::string_view digits = take_digits(rest);
  int magnitude = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
  if (digits.empty() || parsed.ec != std::errc{}) return;
  number.exponent = is_negative ? -magnitude : magnitude;
  number.rest = rest;
}

std::optional<Number> split_number(std::string_view text) {
  Number number;
  number.rest = text;
  number.whole = take_digits(number.rest);
  if (number.whole.empty()) return std::nullopt;
  if (number.rest.starts_with('.')) {
    number.rest.remove_prefix(1);
    number.fraction = take_digits(number.rest);
    if (number.fraction.empty()) return std::nullopt;
  }
  take_exponent(number);
  number.text = text.substr(0, text.size() - number.rest.size());
  return number;
}

template <typename AnyUnit>
const AnyUnit* find_unit(std::span<const AnyUnit> units, std::string_view name) {
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const AnyUnit& unit) { return unit.name == name; });
  return found == units.end() ? nullptr : &*found;
}

std::optional<double> to_double(std::string_view number) {
  double value = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != number.data() + number.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_quantity(std::string_view text, std::span<const Unit> units) {
  const auto number = split_number(text);
  if (!number) return std::nullopt;
  const Unit* unit = find_unit(units, number->rest);
  const auto value = to_double(number->text);
  if (unit == nullptr || !value) return std::nullopt;
  const double scaled = *value * unit->multiply / unit->divide;
  if (!std::isfinite(scaled)) return std::nullopt;
  return scaled;
}

enum class Fractions : std::uint8_t { kRefuse, kRound };

// scaled / 10^places as a whole number.
std::optional<std::uint64_t> divide_by_power_of_ten(std::uint64_t scaled, int places,
                                                    Fractions fractions) {
  constexpr int kMaxPlaces = 19;  // 10^19 is the last power that fits
  if (places > kMaxPlaces) return std::nullopt;
  std::uint64_t divisor = 1;
  for (int place = 0; place < places; ++place) divisor *= 10;
  const std::uint64_t quotient = scaled / divisor;
  const std::uint64_t remainder = scaled % divisor;
  if (remainder != 0 && fractions == Fractions::kRefuse) return std::nullopt;
  return quotient + (remainder >= divisor - remainder && remainder != 0 ? 1 : 0);
}

// Integer arithmetic throughout, so that every count up to 2^64 - 1 is exact; nothing when it does
// not fit.
std::optional<std::uint64_t> scale_exactly(const Number& number, std::uint64_t multiply,
                                           Fractions fractions) {
  std::string_view fraction = number.fraction;
  while (fraction.ends_with('0')) fraction.remove_suffix(1);
  std::uint64_t value = 0;
  for (const std::string_view digits : {number.whole, fraction}) {
    for (const char digit : digits) {
      if (__builtin_mul_overflow(value, std::uint64_t{10}, &value)) return std::nullopt;
      if (__builtin_add_overflow(value, static_cast<std::uint64_t>(digit - '0'), &value))
        return std::nullopt;
    }
  }
  if (value == 0) return 0;
  std::int64_t places = static_cast<std::int64_t>(fraction.size()) - number.exponent;
  // Common factors of ten go first: they are what would overflow in 1.000000000000001TB.
  for (; places > 0 && multiply % 10 == 0; --places) multiply /= 10;
  for (; places > 0 && value % 10 == 0; --places) value /= 10;
  if (__builtin_mul_overflow(value, multiply, &value)) return std::nullopt;
  for (; places < 0; ++places) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value)) return std::nullopt;
  }
  constexpr std::int64_t kTooManyPlaces = 20;
  return divide_by_power_of_ten(value, static_cast<int>(std::min(places, kTooManyPlaces)),
                                fractions);
}

Error expected(std::string_view what, std::string_view expectation, std::string_view text) {
  std::string message;
  message.append(what)
      .append(": expected ")
      .append(expectation)
      .append(", got \"")
      .append(text)
      .append("\"");
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

// Four significant digits without exponent or trailing zeros; whole digits are never cut.
std::string print_number(double value) {
  constexpr int kSignificantDigits = 4;
  constexpr double kAllDigitsWhole = 9999.5;
  std::array<char, 400> buffer{};  // the longest double has 309 digits before its point
  const auto printed =
      value < kAllDigitsWhole
          ? std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::general,
                          kSignificantDigits)
          : std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed, 0);
  return {buffer.begin(), printed.ptr};
}

std::string print_quantity(double value, std::span<const Unit> units) {
  constexpr double kPrintsAsOne = 0.99995;  // 999.99us reads 1ms, not 1000us
  const auto in_unit = [value](const Unit& unit) { return value * unit.divide / unit.multiply; };
  const auto fits = [&](const Unit& unit) { return in_unit(unit) >= kPrintsAsOne; };
  const auto found = std::find_if(units.rbegin(), units.rend(), fits);
  const Unit& unit = found == units.rend() ? units.front() : *found;
  return print_number(in_unit(unit)).append(unit.name);
}

}  // namespace

Result<Seconds> parse_duration(std::string_view text) {
  constexpr double kMost = 1e9;  // seconds: 30 years, and far from where sums lose them
  const auto value = parse_quantity(text, kDurationUnits);
  if (value && *value <= kMost) return Seconds(*value);
  return expected("duration", "a number and a unit such as 200ms, 0.1s or 2min", text);
}

Result<Bandwidth> parse_bandwidth(std::string_view text) {
  for (const std::span<const Unit> units :
       {std::span<const Unit>(kBitRateUnits), std::span<const Unit>(kByteRateUnits)}) {
    if (const auto value = parse_quantity(text, units))
      return Bandwidth{.bytes_per_second = *value};
  }
  return expected("bandwidth", "a number and a unit such as 20mbit or 1.5gbit", text);
}

Result<ByteCount> parse_bytes(std::string_view text) {
  const Error error =
      expected("bytes", "a number and a unit such as 64KiB, 1MB or 123B, below 2^64 bytes", text);
  const auto number = split_number(text);
  if (!number) return error;
  const auto* unit = find_unit<WholeUnit>(kBinaryByteUnits, number->rest);
  if (unit == nullptr) unit = find_unit<WholeUnit>(kDecimalByteUnits, number->rest);
  if (unit == nullptr) return error;
  const auto fractions = unit->multiply == 1 ? Fractions::kRefuse : Fractions::kRound;
  if (const auto value = scale_exactly(*number, unit->multiply, fractions))
    return ByteCount{.value = *value};
  return error;
}

Result<std::uint64_t> parse_count(std::string_view text) {
  const Error error =
      expected("count", "a whole number such as 65536, 1.3k, 25M or 2B, below 2^64", text);
  const auto number = split_number(text);
  if (!number) return error;
  const auto* unit = find_unit<WholeUnit>(kCountUnits, number->rest);
  if (unit == nullptr) return error;
  if (const auto value = scale_exactly(*number, unit->multiply, Fractions::kRefuse)) return *value;
  return error;
}

Result<double> parse_ratio(std::string_view text) {
  const auto slash = text.find('/');
  std::optional<double> value;
  if (slash == std::string_view::npos) {
    value = parse_quantity(text, kRatioUnits);
  } else {
    const auto part = parse_quantity(text.substr(0, slash), std::span(kRatioUnits).first(1));
    const auto whole = parse_quantity(text.substr(slash + 1), std::span(kRatioUnits).first(1));
    if (part && whole && *whole > 0) value = *part / *whole;
  }
  if (value && *value >= 0 && *value <= 1) return *value;
  return expected("ratio", "a number from 0 to 1 such as 0.01, 1/64 or 1%", text);
}

std::string to_string(Seconds duration) {
  if (duration.count() == 0) return "0s";
  return print_quantity(duration.count(), kDurationUnits);
}

std::string to_string(Bandwidth bandwidth) {
  return print_quantity(bandwidth.bytes_per_second, kBitRateUnits);
}

std::string to_string(ByteCount bytes) {
  std::array<Unit, kBinaryByteUnits.size()> units;
  std::transform(kBinaryByteUnits.begin(), kBinaryByteUnits.end(), units.begin(),
                 [](const WholeUnit& unit) {
                   return Unit{.name = unit.name, .multiply = static_cast<double>(unit.multiply)};
                 });
  return print_quantity(static_cast<double>(bytes.value), units);
}

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace longhaul
