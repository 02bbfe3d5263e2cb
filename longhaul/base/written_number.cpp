#include "longhaul/base/written_number.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace longhaul {
namespace {

std::string_view take_digits(std::string_view& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// An exponent too large for int leaves `e…` in the rest, where no unit matches it.
void take_exponent(WrittenNumber& number) {
  if (!number.unit.starts_with('e')) return;
  std::string_view rest = number.unit.substr(1);
  const bool is_negative = rest.starts_with('-');
  if (is_negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::string_view digits = take_digits(rest);
  int magnitude = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
  if (digits.empty() || parsed.ec != std::errc{}) return;
  number.exponent = is_negative ? -magnitude : magnitude;
  number.unit = rest;
}

// scaled / 10^places as a whole number.
std::optional<std::uint64_t> divide_by_power_of_ten(std::uint64_t scaled, int places,
                                                    bool may_round) {
  constexpr int kMaxPlaces = 19;  // 10^19 is the last power that fits
  if (places > kMaxPlaces) return std::nullopt;
  std::uint64_t divisor = 1;
  for (int place = 0; place < places; ++place) divisor *= 10;
  const std::uint64_t quotient = scaled / divisor;
  const std::uint64_t remainder = scaled % divisor;
  if (remainder != 0 && !may_round) return std::nullopt;
  return quotient + (remainder >= divisor - remainder && remainder != 0 ? 1 : 0);
}

std::optional<std::uint64_t> scale(const WrittenNumber& number, std::uint64_t multiply,
                                   bool may_round) {
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
                                may_round);
}

}  // namespace

std::optional<WrittenNumber> split_number(std::string_view text) {
  WrittenNumber number;
  number.unit = text;
  number.whole = take_digits(number.unit);
  if (number.whole.empty()) return std::nullopt;
  if (number.unit.starts_with('.')) {
    number.unit.remove_prefix(1);
    number.fraction = take_digits(number.unit);
    if (number.fraction.empty()) return std::nullopt;
  }
  take_exponent(number);
  number.text = text.substr(0, text.size() - number.unit.size());
  const std::size_t letter = number.unit.find_first_not_of(' ');
  if (letter != std::string_view::npos) number.unit.remove_prefix(letter);
  return number;
}

std::optional<double> to_double(const WrittenNumber& number) {
  const std::string_view text = number.text;
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> scale_exactly(const WrittenNumber& number, std::uint64_t multiply) {
  return scale(number, multiply, false);
}

std::optional<std::uint64_t> scale_rounded(const WrittenNumber& number, std::uint64_t multiply) {
  return scale(number, multiply, true);
}

}  // namespace longhaul
