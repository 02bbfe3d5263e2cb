#include "longhaul/link/rate_estimator.h"

#include <algorithm>
#include <cmath>

namespace longhaul {
namespace {

constexpr double kNear = 0.15;         // a sample within e^±0.15 of the level is jitter
constexpr double kGain = 0.5;          // of a sample that is near
constexpr double kCautiousGain = 0.3;  // of one that is far and not confirmed yet
constexpr std::size_t kConfirmed = 2;  // samples that make a far one a change
constexpr double kSpreadGain = 0.1;

}  // namespace

void RateEstimator::add(const TransferSample& sample) {
  if (sample.bytes <= 0 || sample.duration.count() <= 0) return;
  const double log_rate = std::log(sample.bytes / sample.duration.count());
  if (!level_) {
    level_ = log_rate;
    return;
  }
  // An app-limited message shows that the link carries at least this much, and nothing else.
  if (sample.is_app_limited && log_rate <= *level_) return;
  follow(log_rate);
}

void RateEstimator::follow(double log_rate) {
  const double off = log_rate - *level_;
  spread_ += kSpreadGain * (std::min(std::abs(off), 1.0) - spread_);
  if (std::abs(off) <= kNear) {
    apart_.clear();
    *level_ += kGain * off;
    return;
  }
  if (!apart_.empty() && (apart_.back() - *level_) * off < 0) apart_.clear();
  apart_.push_back(log_rate);
  if (apart_.size() < kConfirmed) {
    *level_ += kCautiousGain * off;
    return;
  }
  // The more cautious of them: after a change they are all alike.
  const double level = *level_;
  level_ = *std::ranges::min_element(apart_, {},
                                     [level](double rate) { return std::abs(rate - level); });
  apart_.clear();
}

std::optional<Bandwidth> RateEstimator::typical() const {
  if (!level_) return std::nullopt;
  return Bandwidth{.bytes_per_second = std::exp(*level_)};
}

std::optional<Bandwidth> RateEstimator::low() const {
  if (!level_) return std::nullopt;
  return Bandwidth{.bytes_per_second = std::exp(*level_ - spread_)};
}

}  // namespace longhaul
