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

  Heartbeats(std::size_t ranks, TimePoint now) : ranks_(ranks, Rank{.since = now}) {}

  // `count` is the number of beats of a rank so far.
  void note(std::size_t rank, std::int64_t count, TimePoint now) {
    if (ranks_[rank].count != count) ranks_[rank] = {.count = count, .since = now};
  }

  // The rank that has been silent for the longest time, if that is too long.
  [[nodiscard]] std::optional<std::size_t> silent(TimePoint now) const {
    std::optional<std::size_t> first;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (now - ranks_[rank].since <= kMostSilence) continue;
      if (!first || ranks_[rank].since < ranks_[*first].since) first = rank;
    }
    return first;
  }

 private:
  struct Rank {
    std::int64_t count = 0;
    TimePoint since;
  };
  std::vector<Rank> ranks_;
};

}  // namespace longhaul::trainer
