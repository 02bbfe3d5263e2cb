#include "longhaul/job/scenario_domain.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "longhaul/base/text.h"
#include "longhaul/base/unit_names.h"
#include "longhaul/codec/codec.h"

namespace longhaul {
namespace {

using Kind = RawValue::Kind;

bool is_text(const RawValue& value) {
  return value.kind == Kind::kText || value.kind == Kind::kBare;
}

bool is_number(const RawValue& value) {
  return value.kind == Kind::kInteger || value.kind == Kind::kReal || value.kind == Kind::kBare;
}

template <typename T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> finite_in(const RawValue& value) {
  const auto number = is_number(value) ? number_in<double>(value.text) : std::nullopt;
  return number && std::isfinite(*number) ? number : std::nullopt;
}

template <typename T>
std::optional<T> value_of(const Result<T>& result) {
  return result.ok() ? std::optional<T>(*result) : std::nullopt;
}

// As few digits as read back as the same number.
std::string written(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.begin(), text.end(), number).ptr;
  return {text.begin(), end};
}

// "such as "200ms" (ns, us, …)".
std::string such_as(const char* example, std::string_view units) {
  return std::string(" such as \"") + example + "\" (" + std::string(units) + ')';
}

std::string quoted(const std::string& text) {
  std::string escaped = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') escaped += '\\';
    if (letter == '\n') {
      escaped += "\\n";
    } else if (letter == '\t') {
      escaped += "\\t";
    } else {
      escaped += letter;
    }
  }
  return escaped + '"';
}

// The short form where it reads back as the same value.
std::string exactly(Seconds time) {
  const std::string text = to_string(time);
  const Result<Seconds> again = parse_duration(text);
  return quoted(again.ok() && *again == time ? text : written(time.count()) + 's');
}

std::string exactly(Bandwidth rate) {
  const std::string text = to_string(rate);
  const Result<Bandwidth> again = parse_bandwidth(text);
  return quoted(again.ok() && *again == rate ? text : written(rate.bits_per_second()) + "bit");
}

}  // namespace

Domain<std::uint64_t> whole(std::uint64_t least, std::uint64_t most) {
  const std::string range = most == std::numeric_limits<std::uint64_t>::max()
                                ? ", at least " + std::to_string(least)
                                : " from " + std::to_string(least) + " to " + std::to_string(most);
  return {.expected = "a whole number" + range,
          .read = [=](const RawValue& value) -> std::optional<std::uint64_t> {
            if (value.kind != Kind::kInteger && value.kind != Kind::kBare) return std::nullopt;
            const auto number = number_in<std::uint64_t>(value.text);
            return number && *number >= least && *number <= most ? number : std::nullopt;
          },
          .show = [](std::uint64_t number) { return std::to_string(number); }};
}

Domain<double> real_above(double least) {
  return {.expected = "a number above " + written(least),
          .read = [=](const RawValue& value) -> std::optional<double> {
            const auto number = finite_in(value);
            return number && *number > least ? number : std::nullopt;
          },
          .show = written};
}

Domain<double> real_from(double least, double most) {
  std::string range = ", at least " + written(least);
  if (most < std::numeric_limits<double>::max()) range += " and at most " + written(most);
  return {.expected = "a number" + range,
          .read = [=](const RawValue& value) -> std::optional<double> {
            const auto number = finite_in(value);
            return number && *number >= least && *number <= most ? number : std::nullopt;
          },
          .show = written};
}

Domain<double> ratio() {
  return {.expected = "a ratio above 0 and at most 1, such as 0.05 or \"1/64\"",
          .read = [](const RawValue& value) -> std::optional<double> {
            if (!is_text(value) && !is_number(value)) return std::nullopt;
            const auto number = value_of(parse_ratio(value.text));
            return number && *number > 0 ? number : std::nullopt;
          },
          .show = written};
}

Domain<Seconds> duration() {
  return {.expected = "a duration" + such_as("200ms", kDurationUnitNames),
          .read = [](const RawValue& value) -> std::optional<Seconds> {
            return is_text(value) ? value_of(parse_duration(value.text)) : std::nullopt;
          },
          .show = [](Seconds time) { return exactly(time); }};
}

Domain<Seconds> positive_duration() {
  Domain<Seconds> any = duration();
  return {.expected = "a duration above 0" + such_as("200ms", kDurationUnitNames),
          .read = [=](const RawValue& value) -> std::optional<Seconds> {
            const std::optional<Seconds> time = any.read(value);
            return time && time->count() > 0 ? time : std::nullopt;
          },
          .show = any.show};
}

Domain<Seconds> duration_from(Seconds least) {
  Domain<Seconds> any = duration();
  return {.expected =
              "a duration of at least " + to_string(least) + such_as("200ms", kDurationUnitNames),
          .read = [=](const RawValue& value) -> std::optional<Seconds> {
            const std::optional<Seconds> time = any.read(value);
            return time && *time >= least ? time : std::nullopt;
          },
          .show = any.show};
}

Domain<Bandwidth> bandwidth() {
  return {.expected = "a bandwidth above 0" + such_as("20mbit", kBandwidthUnitNames),
          .read = [](const RawValue& value) -> std::optional<Bandwidth> {
            const auto rate = is_text(value) ? value_of(parse_bandwidth(value.text)) : std::nullopt;
            return rate && rate->bytes_per_second > 0 ? rate : std::nullopt;
          },
          .show = [](Bandwidth rate) { return exactly(rate); }};
}

Domain<std::string> any_text(const std::string& expected) {
  return {.expected = expected,
          .read = [](const RawValue& value) -> std::optional<std::string> {
            return is_text(value) ? std::optional(value.text) : std::nullopt;
          },
          .show = quoted};
}

Domain<std::string> codec_name() {
  return {.expected = "a codec such as \"top_k/bf16\"",
          .read = [](const RawValue& value) -> std::optional<std::string> {
            const bool is_codec = is_text(value) && parse_codec(value.text).ok();
            return is_codec ? std::optional(value.text) : std::nullopt;
          },
          .show = quoted};
}

Domain<std::string> one_of(const std::vector<std::string>& names) {
  std::string expected = "one of ";
  for (const std::string& name : names) expected += (name == names.front() ? "" : ", ") + name;
  return {.expected = expected,
          .read = [=](const RawValue& value) -> std::optional<std::string> {
            const bool is_known =
                is_text(value) && std::ranges::find(names, value.text) != names.end();
            return is_known ? std::optional(value.text) : std::nullopt;
          },
          .show = quoted};
}

Domain<std::vector<std::string>> text_list(const std::string& expected) {
  using Texts = std::vector<std::string>;
  return {.expected = expected,
          .read = [](const RawValue& value) -> std::optional<Texts> {
            if (value.kind == Kind::kList) return value.items;
            if (value.kind != Kind::kBare) return std::nullopt;
            return split_list(value.text);
          },
          .show =
              [](const Texts& items) {
                std::string text;
                for (const std::string& item : items)
                  text += (text.empty() ? "" : ", ") + quoted(item);
                return '[' + text + ']';
              }};
}

}  // namespace longhaul
