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

#include "longhaul/base/text.h"
#include "longhaul/base/unit_names.h"
#include "longhaul/base/written_number.h"

namespace longhaul {
namespace {

// A unit is multiply / divide base units. Both are whole, so that 200ms is 200/1000 s, correctly
// rounded.
struct Unit {
  std::string_view name;
  std::uint64_t multiply = 1;
  std::uint64_t divide = 1;
};
constexpr std::uint64_t kThousand = 1'000;
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr std::uint64_t kTrillion = 1'000'000'000'000;

// Printing takes the last unit that keeps the number at one or more, so the printed ones are in
// rising order.
constexpr std::array kDurationUnits = {
    Unit{.name = "ns", .divide = kBillion},
    Unit{.name = "\u00b5s", .divide = kMillion},  // the micro sign, and the Greek letter
    Unit{.name = "\u03bcs", .divide = kMillion},
    Unit{.name = "us", .divide = kMillion},
    Unit{.name = "ms", .divide = kThousand},
    Unit{.name = "s"},
    Unit{.name = "min", .multiply = 60},
    Unit{.name = "h", .multiply = 3600},
};
constexpr std::array kBitRateUnits = {
    Unit{.name = "bit", .divide = 8},
    Unit{.name = "kbit", .multiply = kThousand, .divide = 8},
    Unit{.name = "mbit", .multiply = kMillion, .divide = 8},
    Unit{.name = "gbit", .multiply = kBillion, .divide = 8},
    Unit{.name = "tbit", .multiply = kTrillion, .divide = 8},
};
// Rates as people write them, behind a prefix in any case. A lone b is bits and a lone B is bytes,
// and only where "per second" says that a rate is meant: 20mb could be either.
constexpr std::array kRateUnits = {
    Unit{.name = "bit", .divide = 8},
    Unit{.name = "bits", .divide = 8},
    Unit{.name = "bit/s", .divide = 8},
    Unit{.name = "bits/s", .divide = 8},
    Unit{.name = "byte/s"},
    Unit{.name = "bytes/s"},
};
constexpr std::array kRateUnitsWithCase = {
    Unit{.name = "b/s", .divide = 8},
    Unit{.name = "bps", .divide = 8},
    Unit{.name = "B/s"},
    Unit{.name = "Bps"},
};
constexpr std::string_view kRatePrefixes = "kmgt";
constexpr std::array kRateFactors = {kThousand, kMillion, kBillion, kTrillion};
constexpr std::array kBinaryByteUnits = {
    Unit{.name = "B"},
    Unit{.name = "KiB", .multiply = std::uint64_t{1} << 10},
    Unit{.name = "MiB", .multiply = std::uint64_t{1} << 20},
    Unit{.name = "GiB", .multiply = std::uint64_t{1} << 30},
    Unit{.name = "TiB", .multiply = std::uint64_t{1} << 40},
};
constexpr std::array kDecimalByteUnits = {
    Unit{.name = "kB", .multiply = kThousand},
    Unit{.name = "MB", .multiply = kMillion},
    Unit{.name = "GB", .multiply = kBillion},
    Unit{.name = "TB", .multiply = kTrillion},
};
constexpr std::array kCountUnits = {
    Unit{.name = ""},
    Unit{.name = "k", .multiply = kThousand},
    Unit{.name = "M", .multiply = kMillion},
    Unit{.name = "B", .multiply = kBillion},
};
constexpr std::array kRatioUnits = {Unit{.name = ""}, Unit{.name = "%", .divide = 100}};

bool is_same_name(std::string_view written, std::string_view name) {
  return written.size() == name.size() && lower_case(written) == lower_case(name);
}

const Unit* find_unit(std::span<const Unit> units, std::string_view written) {
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& unit) {
    return is_same_name(written, unit.name);
  });
  return found == units.end() ? nullptr : &*found;
}

std::optional<Unit> rate_unit(std::string_view written) {
  std::uint64_t multiply = 1;
  const std::string first = lower_case(written.substr(0, 1));
  const std::size_t prefix = first.empty() ? std::string_view::npos : kRatePrefixes.find(first);
  if (prefix != std::string_view::npos) {
    multiply = kRateFactors.at(prefix);
    written.remove_prefix(1);
  }
  const Unit* unit = find_unit(kRateUnits, written);
  if (unit == nullptr) {
    const auto* found = std::ranges::find(kRateUnitsWithCase, written, &Unit::name);
    if (found == kRateUnitsWithCase.end()) return std::nullopt;
    unit = found;
  }
  return Unit{.name = unit->name, .multiply = multiply, .divide = unit->divide};
}

std::optional<double> scaled_by(const WrittenNumber& number, const Unit& unit) {
  const auto value = to_double(number);
  if (!value) return std::nullopt;
  const double scaled =
      *value * static_cast<double>(unit.multiply) / static_cast<double>(unit.divide);
  if (!std::isfinite(scaled)) return std::nullopt;
  return scaled;
}

std::optional<double> parse_quantity(std::string_view text, std::span<const Unit> units) {
  const auto number = split_number(text);
  if (!number) return std::nullopt;
  const Unit* unit = find_unit(units, number->unit);
  return unit == nullptr ? std::nullopt : scaled_by(*number, *unit);
}

// 64mb could be bits: beside KiB and its like, bytes have a capital B.
const Unit* byte_unit(std::string_view written) {
  if (const auto* unit = find_unit(std::span(kBinaryByteUnits).subspan(1), written)) return unit;
  if (!written.ends_with('B')) return nullptr;
  return written == kBinaryByteUnits.front().name ? kBinaryByteUnits.data()
                                                  : find_unit(kDecimalByteUnits, written);
}

// "a number and a unit (ns, us, ms) such as 200ms".
std::string in_units(std::string_view units, std::string_view example) {
  std::string text = "a number and a unit (";
  return text.append(units).append(") such as ").append(example);
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
  const auto in_unit = [value](const Unit& unit) {
    return value * static_cast<double>(unit.divide) / static_cast<double>(unit.multiply);
  };
  const auto fits = [&](const Unit& unit) { return in_unit(unit) >= kPrintsAsOne; };
  const auto found = std::find_if(units.rbegin(), units.rend(), fits);
  const Unit& unit = found == units.rend() ? units.front() : *found;
  return print_number(in_unit(unit)).append(unit.name);
}

}  // namespace

Result<Seconds> parse_duration(std::string_view text) {
  // 34 years. Whole hours, because to_string() rounds to them: it never prints more than this.
  constexpr double kMost = 300'000.0 * 3600;
  const auto value = parse_quantity(text, kDurationUnits);
  if (value && *value <= kMost) return Seconds(*value);
  return expected("duration", in_units(kDurationUnitNames, "200ms"), text);
}

Result<Bandwidth> parse_bandwidth(std::string_view text) {
  const auto number = split_number(text);
  const auto unit = number ? rate_unit(number->unit) : std::nullopt;
  if (const auto value = unit ? scaled_by(*number, *unit) : std::nullopt)
    return Bandwidth{.bytes_per_second = *value};
  return expected("bandwidth", in_units(kBandwidthUnitNames, "20mbit"), text);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const Error error = expected("bytes", in_units(kByteUnitNames, "64KiB, below 2^64 bytes"), text);
  const auto number = split_number(text);
  const Unit* unit = number ? byte_unit(number->unit) : nullptr;
  if (unit == nullptr) return error;
  const auto value = unit->multiply == 1 ? scale_exactly(*number, unit->multiply)
                                         : scale_rounded(*number, unit->multiply);
  if (value) return *value;
  return error;
}

Result<std::uint64_t> parse_count(std::string_view text) {
  const Error error =
      expected("count", "a whole number such as 65536, 1.3k, 25M or 2B, below 2^64", text);
  const auto number = split_number(text);
  if (!number) return error;
  const auto* unit = find_unit(kCountUnits, number->unit);
  if (unit == nullptr) return error;
  if (const auto value = scale_exactly(*number, unit->multiply)) return *value;
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

std::string bytes_text(std::uint64_t bytes) {
  return print_quantity(static_cast<double>(bytes), kBinaryByteUnits);
}

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace longhaul
