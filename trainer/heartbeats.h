// Tells which rank has been silent for too long. Pure: beats and time come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"

namespace longhaul::trainer {

class Heartbeats {
 public:
  static constexpr Seconds kEvery{0.5};
  // Long enough for a busy machine, and short enough that all ranks end within ten seconds.
  static constexpr Seconds kMostSilence{6.0};

  Heartbeats(std::size_t ranks, TimePoint now) : counts_(ranks), since_(ranks, now) {}

  // `count` is the number of beats of a rank so far.
  void note(std::size_t rank, std::int64_t count, TimePoint now) {
    if (counts_[rank] == count) return;
    counts_[rank] = count;
    since_[rank] = now;
  }

  // The rank that has been silent for the longest time, if that is too long.
  [[nodiscard]] std::optional<std::size_t> silent(TimePoint now) const {
    std::optional<std::size_t> first;
    for (std::size_t rank = 0; rank < since_.size(); ++rank) {
      if (now - since_[rank] <= kMostSilence) continue;
      if (!first || since_[rank] < since_[*first]) first = rank;
    }
    return first;
  }

 private:
  std::vector<std::int64_t> counts_;  // by rank
  std::vector<TimePoint> since_;      // when that count was new
};

}  // namespace longhaul::trainer
