#include "longhaul/link/rate_trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

// The lines that hold something, without the white space around it, with their numbers.
std::vector<std::pair<std::size_t, std::string_view>> lines_of(std::string_view text) {
  std::vector<std::pair<std::size_t, std::string_view>> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (!line.empty()) lines.emplace_back(number, line);
  }
  return lines;
}

// From 0 to a bound beyond any use, so that nothing computed from it overflows.
bool read_number(std::string_view text, double& value) {
  constexpr double kLargest = 1e12;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() && value >= 0 &&
         value <= kLargest;
}

Error bad_line(std::size_t number, std::string_view line, const std::string& expected) {
  constexpr std::size_t kShown = 60;  // of a line that may be any file's
  return Error{ErrorCode::kInvalidArgument, "trace, line " + std::to_string(number) +
                                                ": expected " + expected + ", got \"" +
                                                std::string(line.substr(0, kShown)) + '"'};
}

constexpr double kLeastStep = 1e-6;

// Each row ends the step of the row before it; the last step has no duration yet.
Result<std::vector<RateStep>> read_steps(std::string_view text) {
  std::vector<RateStep> steps;
  double step_begin = 0;
  bool may_be_header = true;
  for (const auto& [number, line] : lines_of(text)) {
    if (std::exchange(may_be_header, false) && line == "t_s,mbps") continue;
    const std::size_t comma = line.find(',');
    double time_s = 0;
    double mbps = 0;
    const bool is_row = comma != std::string_view::npos &&
                        read_number(trimmed(line.substr(0, comma)), time_s) &&
                        read_number(trimmed(line.substr(comma + 1)), mbps);
    if (!is_row) return bad_line(number, line, "seconds and megabits per second such as 2.5,20");
    if (!steps.empty() && !(time_s - step_begin >= kLeastStep))
      return bad_line(number, line, "a later time than the line before, by a microsecond or more");
    if (!steps.empty()) steps.back().duration = Seconds(time_s - step_begin);
    steps.push_back({.rate = {.bytes_per_second = mbps * kBytesPerMegabit}});
    step_begin = time_s;
  }
  return steps;
}

// The index of what was found, or the last one.
template <typename T>
std::size_t place_of(typename std::vector<T>::const_iterator found, const std::vector<T>& all) {
  return std::min(static_cast<std::size_t>(found - all.begin()), all.size() - 1);
}

}  // namespace

RateTrace::RateTrace(const std::vector<RateStep>& steps) {
  LONGHAUL_CHECK(!steps.empty());
  Seconds end{};
  double bytes = 0;
  for (const RateStep& step : steps) {
    LONGHAUL_CHECK_GT(step.duration.count(), 0.0);
    LONGHAUL_CHECK_GE(step.rate.bytes_per_second, 0.0);
    end += step.duration;
    bytes += step.rate.bytes_per_second * step.duration.count();
    rates_.push_back(step.rate.bytes_per_second);
    ends_.push_back(end);
    bytes_at_end_.push_back(bytes);
  }
  LONGHAUL_CHECK_GT(bytes, 0.0);
}

RateTrace RateTrace::constant(Bandwidth rate) {
  return RateTrace({{.duration = Seconds(1.0), .rate = rate}});
}

Bandwidth RateTrace::at(Seconds time) const {
  const double within = std::fmod(time.count(), period().count());
  return {.bytes_per_second =
              rates_[place_of(std::ranges::upper_bound(ends_, Seconds(within)), ends_)]};
}

Bandwidth RateTrace::mean() const {
  return {.bytes_per_second = bytes_at_end_.back() / period().count()};
}

double RateTrace::bytes_by(Seconds within_period) const {
  const auto end = std::ranges::lower_bound(ends_, within_period);
  if (end == ends_.end()) return bytes_at_end_.back();
  const std::size_t step = place_of(end, ends_);
  return bytes_at_end_[step] - rates_[step] * (*end - within_period).count();
}

Seconds RateTrace::finish(Seconds start, double bytes) const {
  if (bytes <= 0) return start;
  if (is_constant()) return start + Seconds(bytes / rates_.front());
  const double per_period = bytes_at_end_.back();
  const double periods_before = std::floor(start / period());
  const double wanted = bytes_by(start - periods_before * period()) + bytes;
  // The last byte passes inside a period, never exactly at the start of the next one.
  const double whole = std::max(0.0, std::ceil(wanted / per_period) - 1.0);
  const double within = wanted - whole * per_period;
  const std::size_t last = place_of(std::ranges::lower_bound(bytes_at_end_, within), bytes_at_end_);
  const double before_end = rates_[last] > 0 ? (bytes_at_end_[last] - within) / rates_[last] : 0.0;
  // Not before the start, where the bytes are lost in rounding.
  return std::max(start, (periods_before + whole) * period() + ends_[last] - Seconds(before_end));
}

RateTrace RateTrace::scaled_to(Bandwidth wanted) const {
  const double factor = wanted.bytes_per_second / mean().bytes_per_second;
  std::vector<RateStep> steps;
  Seconds begin{};
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    steps.push_back(
        {.duration = ends_[i] - begin, .rate = {.bytes_per_second = rates_[i] * factor}});
    begin = ends_[i];
  }
  return RateTrace(steps);
}

Result<RateTrace> parse_csv_trace(std::string_view text) {
  std::vector<RateStep> steps = LONGHAUL_TRY(read_steps(text));
  if (steps.size() < 2)
    return Error{ErrorCode::kInvalidArgument, "trace: expected at least two rows of t_s,mbps"};
  steps.back().duration = steps[steps.size() - 2].duration;
  double bytes = 0;
  for (const RateStep& step : steps) bytes += step.rate.bytes_per_second * step.duration.count();
  if (bytes < 1)
    return Error{ErrorCode::kInvalidArgument, "trace: not one byte passes in all of it"};
  return RateTrace(steps);
}

Result<RateTrace> parse_mahimahi_trace(std::string_view text) {
  constexpr double kPacketBytes = 1500;
  constexpr std::size_t kBinMs = 100;
  constexpr double kLongestMs = 24 * 3600 * 1e3;
  std::vector<double> bins;
  double last_ms = 0;
  for (const auto& [number, line] : lines_of(text)) {
    double ms = 0;
    if (!read_number(line, ms) || ms != std::floor(ms) || ms > kLongestMs)
      return bad_line(number, line, "a whole number of milliseconds, at most a day");
    if (ms < last_ms) return bad_line(number, line, "a time not before the line above");
    last_ms = ms;
    const std::size_t bin = ms == 0 ? 0 : (static_cast<std::size_t>(ms) - 1) / kBinMs;
    if (bin >= bins.size()) bins.resize(bin + 1, 0.0);
    bins[bin] += kPacketBytes;
  }
  if (last_ms <= 0)
    return Error{ErrorCode::kInvalidArgument, "trace: expected at least one millisecond above 0"};
  std::vector<RateStep> steps;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double length_ms = std::min<double>(kBinMs, last_ms - static_cast<double>(i * kBinMs));
    steps.push_back({.duration = Seconds(length_ms / 1e3),
                     .rate = {.bytes_per_second = bins[i] / (length_ms / 1e3)}});
  }
  return RateTrace(steps);
}

RateTrace markov_trace(const MarkovRates& rates) {
  LONGHAUL_CHECK(rates.spread >= 0 && rates.spread < 1);
  LONGHAUL_CHECK_GT(rates.mean_dwell.count(), 0.0);
  constexpr std::array kLevels{-1.0, -0.5, 0.0, 0.5, 1.0};
  std::mt19937_64 random(rates.seed);
  // Drawn by hand: the distributions of the standard library differ between implementations.
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  std::vector<RateStep> steps;
  std::size_t level = kLevels.size() / 2;
  for (Seconds at{}; at < rates.length;) {
    const Seconds dwell = std::min(rates.length - at, rates.mean_dwell * -std::log(uniform()));
    const double rate = rates.mean.bytes_per_second * (1 + rates.spread * kLevels[level]);
    if (dwell.count() > 0) steps.push_back({.duration = dwell, .rate = {.bytes_per_second = rate}});
    at += dwell;
    const bool goes_up = level == 0 || (level + 1 < kLevels.size() && uniform() < 0.5);
    level = goes_up ? level + 1 : level - 1;
  }
  return RateTrace(steps).scaled_to(rates.mean);
}

}  // namespace longhaul
