// How long a small message takes to the hub and back when nothing is in its way.
#pragma once

#include <deque>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"

namespace longhaul {

// The least of the last half minute: a message may wait behind others, for a while even every one
// of them, and a path may become longer.
class RoundTrips {
 public:
  void add(TimePoint now, Seconds took) {
    while (!shorter_later_.empty() && shorter_later_.back().took >= took) shorter_later_.pop_back();
    shorter_later_.push_back({.at = now, .took = took});
    while (now - shorter_later_.front().at > kWindow) shorter_later_.pop_front();
  }
  // Nothing is known of the next path.
  void clear() { shorter_later_.clear(); }

  [[nodiscard]] std::optional<Seconds> least() const {
    if (shorter_later_.empty()) return std::nullopt;
    return shorter_later_.front().took;
  }

 private:
  static constexpr Seconds kWindow{30.0};
  struct Trip {
    TimePoint at;
    Seconds took{};
  };
  std::deque<Trip> shorter_later_;  // those after which no shorter one has come
};

}  // namespace longhaul
