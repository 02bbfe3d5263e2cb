// The rate of one direction of a link, from the training's own traffic: no probe traffic while
// there is any.
#pragma once

#include <optional>
#include <vector>

#include "longhaul/base/units.h"

namespace longhaul {

// One message as its receiver saw it.
struct TransferSample {
  double bytes = 0;
  Seconds duration{};           // from its first byte to its last, on the receiver's clock
  bool is_app_limited = false;  // the sender had not enough to send: the link may be faster
  bool is_probe = false;        // sent to tell the rate
};

// A busy machine sees transfers milliseconds early or late, sometimes much more. A transfer of this
// length is measured well enough.
constexpr Seconds kTrustedDuration{0.02};
// Nor are they busy for this long: what takes so long tells, however few bytes it has.
constexpr Seconds kMostBusy{0.25};

// Estimates the rate of a link from the transfers that passed.
// Follows a rate that halves or doubles within two samples, and ignores jitter. The level jumps
// when a second sample confirms the first.
class RateEstimator {
 public:
  RateEstimator() = default;
  // Transfers that are shorter than `trusted`, or would be at the level, are added up until they
  // have lasted so long; probes are not, and those of a few packets tell nothing. Gaps between
  // pieces weigh much in them, and pieces that came together with the first one count for no time.
  // So they can only raise the level, where they show a much higher one twice in a row. A first one
  // counts at any length, until there is a better one.
  explicit RateEstimator(Seconds trusted) : trusted_(trusted) {}

  // True if the level is known anew.
  bool add(const TransferSample& sample);
  // After the last sample: the link may have become slower, or a machine was busy. A longer
  // transfer would tell.
  [[nodiscard]] bool is_doubted() const { return is_doubted_; }

  // The most likely rate of the next message; nothing before the first sample.
  [[nodiscard]] std::optional<Bandwidth> typical() const;
  // A rate that the next message mostly reaches: for plans that must not stall.
  [[nodiscard]] std::optional<Bandwidth> low() const;

 private:
  [[nodiscard]] bool is_short(const TransferSample& sample) const;
  bool gather(TransferSample& sample);
  void follow(double log_rate);
  void raise(double log_rate);

  Seconds trusted_{};
  bool is_guess_ = false;  // the level is one short transfer's
  bool is_doubted_ = false;
  TransferSample gathered_;       // short ones, together
  std::optional<double> level_;   // logarithm of bytes per second
  double spread_ = 0;             // mean distance of samples from the level, in the logarithm
  std::vector<double> apart_;     // samples in a row that lie far from the level, on the same side
  std::optional<double> higher_;  // what short ones have shown, if they did the last time
};

}  // namespace longhaul
