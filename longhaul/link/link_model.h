// One replica's link to the hub as the lab sees it: bytes queue for the line, pass at its rate, and
// arrive a latency later.
#pragma once

#include <algorithm>
#include <utility>

#include "longhaul/link/rate_trace.h"

namespace longhaul {

// The rates of a link in both directions, and its latency.
struct LinkModel {
  RateTrace up;
  RateTrace down;
  Seconds latency{};  // one way
};

// One direction of a link. It serves what it is given in order, one at a time. Latency occupies no
// line: the next bytes may follow at once.
class Fifo {
 public:
  explicit Fifo(RateTrace rate, Seconds latency = {}) : rate_(std::move(rate)), latency_(latency) {}

  // When the first byte is at the other side, of bytes that are handed over at `time`.
  [[nodiscard]] Seconds first_byte(Seconds time) const {
    return std::max(time, free_at_) + latency_;
  }
  // Takes bytes that are handed over at `time`, and returns when the last one is at the other side.
  // Times must not go back.
  Seconds send(Seconds time, double bytes) {
    free_at_ = rate_.finish(std::max(time, free_at_), bytes);
    return free_at_ + latency_;
  }

  // All that changes: when the line is free again.
  [[nodiscard]] Seconds free_at() const { return free_at_; }
  void set_free_at(Seconds time) { free_at_ = time; }

 private:
  RateTrace rate_;
  Seconds latency_;
  Seconds free_at_{};
};

}  // namespace longhaul
