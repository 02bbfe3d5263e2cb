// How long a small message takes to the hub and back when nothing is in its way.
#pragma once

#include <map>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"

namespace longhaul {

// Finds the latency of a path from the round trips of pings.
// The least of the last half minute: a message may wait behind others, for a while even every one
// of them, and a path may become longer.
class RoundTrips {
 public:
  void add(TimePoint now, Seconds took) {
    std::erase_if(shorter_later_, [&](const auto& trip) {
      const auto& [at, other] = trip;
      return other >= took || now - at > kWindow;
    });
    shorter_later_.emplace(now, took);
  }
  // Nothing is known of the next path.
  void clear() { shorter_later_.clear(); }

  [[nodiscard]] std::optional<Seconds> least() const {
    if (shorter_later_.empty()) return std::nullopt;
    return shorter_later_.begin()->second;
  }

 private:
  static constexpr Seconds kWindow{30.0};
  std::map<TimePoint, Seconds> shorter_later_;  // those after which no shorter one has come
};

}  // namespace longhaul
