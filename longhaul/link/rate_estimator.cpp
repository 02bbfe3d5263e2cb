#include "longhaul/link/rate_estimator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace longhaul {
namespace {

constexpr double kNear = 0.15;         // a sample within e^±0.15 of the level is jitter
constexpr double kGain = 0.5;          // of a sample that is near
constexpr double kCautiousGain = 0.3;  // of one that is far and not confirmed yet
constexpr std::size_t kConfirmed = 2;  // samples that make a far one a change
constexpr double kSpreadGain = 0.1;
constexpr double kMuchHigher = 0.5;  // than the level: more than the way of measuring may explain
constexpr double kFewBytes = 4400;   // three packets: most of it may come with the first chunk

}  // namespace

bool RateEstimator::add(const TransferSample& sample) {
  is_doubted_ = false;
  if (sample.bytes <= 0 || sample.duration.count() < 0) return false;
  TransferSample told = sample;
  if (!gather(told) || told.duration.count() <= 0) return false;
  const double log_rate = std::log(told.bytes / told.duration.count());
  if (!level_ || is_guess_) {
    level_ = log_rate;
    is_guess_ = told.duration < trusted_;
  } else if (!told.is_app_limited) {
    follow(log_rate);
  } else {
    raise(log_rate);
    const bool is_slow = sample.duration >= trusted_ && log_rate < *level_ - kNear;
    is_doubted_ = is_slow && !sample.is_app_limited;
  }
  return !told.is_app_limited && told.duration >= trusted_;
}

// A short one that a busy machine has seen late is not one that tells: nobody would see the others.
bool RateEstimator::is_short(const TransferSample& sample) const {
  const bool would_be = !is_guess_ && !sample.is_probe && sample.duration < kMostBusy &&
                        sample.bytes < trusted_.count() * std::exp(*level_);
  return would_be || (sample.duration < trusted_ && !sample.is_probe);
}

// Makes one sample of short ones. False while it is too short still.
bool RateEstimator::gather(TransferSample& sample) {
  if (!level_ || !is_short(sample)) {
    gathered_ = {};  // older, and not better
    return true;
  }
  if (sample.bytes < kFewBytes && sample.duration < trusted_) return false;
  gathered_.bytes += sample.bytes;
  gathered_.duration += sample.duration;
  if (gathered_.duration < trusted_) return false;
  sample = std::exchange(gathered_, {});
  sample.is_app_limited = true;
  return true;
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

// By app-limited samples, to the lower of two.
void RateEstimator::raise(double log_rate) {
  if (log_rate < *level_ + kMuchHigher) {
    higher_.reset();
    return;
  }
  if (!higher_) {
    higher_ = log_rate;
    return;
  }
  level_ = std::min(log_rate, *std::exchange(higher_, std::nullopt));
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
