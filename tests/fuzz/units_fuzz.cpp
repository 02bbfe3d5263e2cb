// Quantities as people write them: what a parser accepts is sane, and prints as text that it reads
// again.
#include "longhaul/base/units.h"

#include <cmath>
#include <cstddef>

#include "longhaul/base/check.h"

namespace {

using namespace longhaul;

// Printing keeps four digits. Nobody measures what lies outside these limits; there printing
// overflows.
void check_round_trip(double value, double again) {
  constexpr double kTolerance = 1e-3;
  LONGHAUL_CHECK_LE(std::abs(again - value), kTolerance * value);
}
bool is_measurable(double value) { return value > 1e-280 && value < 1e280; }

void check_duration(std::string_view text) {
  const Result<Seconds> parsed = parse_duration(text);
  if (!parsed.ok()) return;
  LONGHAUL_CHECK(std::isfinite(parsed->count()) && parsed->count() >= 0);
  const Result<Seconds> again = parse_duration(to_string(*parsed));
  if (is_measurable(parsed->count())) check_round_trip(parsed->count(), again.value().count());
}

void check_bandwidth(std::string_view text) {
  const Result<Bandwidth> parsed = parse_bandwidth(text);
  if (!parsed.ok()) return;
  LONGHAUL_CHECK(std::isfinite(parsed->bytes_per_second) && parsed->bytes_per_second >= 0);
  const Result<Bandwidth> again = parse_bandwidth(to_string(*parsed));
  if (is_measurable(parsed->bytes_per_second)) {
    check_round_trip(parsed->bytes_per_second, again.value().bytes_per_second);
  }
}

void check_bytes(std::string_view text) {
  constexpr std::uint64_t kLargest = std::uint64_t{1}
                                     << 63;  // beyond, four digits may round up to 2^64
  const Result<std::uint64_t> parsed = parse_bytes(text);
  if (!parsed.ok()) return;
  const Result<std::uint64_t> again = parse_bytes(bytes_text(*parsed));
  if (*parsed < kLargest) {
    check_round_trip(static_cast<double>(*parsed), static_cast<double>(again.value()));
  }
}

void check_count(std::string_view text) {
  const Result<std::uint64_t> parsed = parse_count(text);
  if (!parsed.ok()) return;
  const Result<std::uint64_t> again = parse_count(std::to_string(*parsed));
  LONGHAUL_CHECK_EQ(again.value(), *parsed);
}

void check_ratio(std::string_view text) {
  const Result<double> parsed = parse_ratio(text);
  if (parsed.ok()) LONGHAUL_CHECK(*parsed >= 0 && *parsed <= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_duration(text);
  check_bandwidth(text);
  check_bytes(text);
  check_count(text);
  check_ratio(text);
  return 0;
}
