// Bandwidth over time: piecewise constant, and repeated from the start when it has come to its end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/units.h"

namespace longhaul {

// A rate that holds for a while.
struct RateStep {
  Seconds duration{};
  Bandwidth rate;
};

// A rate over time, piecewise constant.
class RateTrace {
 public:
  // At least one step, each of positive length, and somewhere a rate above zero.
  explicit RateTrace(const std::vector<RateStep>& steps);
  static RateTrace constant(Bandwidth rate);

  [[nodiscard]] Bandwidth at(Seconds time) const;
  [[nodiscard]] Bandwidth mean() const;
  [[nodiscard]] Seconds period() const { return ends_.back(); }
  [[nodiscard]] bool is_constant() const { return rates_.size() == 1; }

  // When the last of `bytes` bytes has passed, if nothing else is sent from `start` on.
  [[nodiscard]] Seconds finish(Seconds start, double bytes) const;

  // The same shape with another mean.
  [[nodiscard]] RateTrace scaled_to(Bandwidth wanted) const;

 private:
  [[nodiscard]] double bytes_by(Seconds within_period) const;

  // By step.
  std::vector<double> rates_;  // in bytes per second
  std::vector<Seconds> ends_;
  std::vector<double> bytes_at_end_;  // since the start of the period
};

// Rows of `t_s,mbps` with ascending times, with or without a header line: each rate holds until the
// next row; the last one for as long as the one before it. Errors name the line.
Result<RateTrace> parse_csv_trace(std::string_view text);

// Mahimahi's format: each line is a millisecond in which one packet of 1500 bytes may pass.
Result<RateTrace> parse_mahimahi_trace(std::string_view text);

// A seeded random walk between a few rates around a mean.
struct MarkovRates {
  Bandwidth mean;
  double spread = 0.5;       // rates lie between mean·(1 - spread) and mean·(1 + spread)
  Seconds mean_dwell{10.0};  // average time until the rate changes
  Seconds length{600.0};     // then it repeats
  std::uint64_t seed = 1;
};
RateTrace markov_trace(const MarkovRates& rates);

}  // namespace longhaul
