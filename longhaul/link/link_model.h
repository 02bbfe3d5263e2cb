// One replica's link to the hub as the lab sees it: bytes queue for the line, pass at its rate, and
// arrive a latency later.
#pragma once

#include <algorithm>
#include <utility>

#include "longhaul/link/rate_trace.h"

namespace longhaul {

struct LinkModel {
  RateTrace up;
  RateTrace down;
  Seconds latency{};  // one way
};

// A line that serves what it is given in order, one at a time.
class Fifo {
 public:
  explicit Fifo(RateTrace rate) : rate_(std::move(rate)) {}

  // Bytes handed over at `time` have passed at the returned time. Times must not go back.
  Seconds pass(Seconds time, double bytes) {
    free_at_ = rate_.finish(std::max(time, free_at_), bytes);
    return free_at_;
  }

 private:
  RateTrace rate_;
  Seconds free_at_{};
};

// Both directions of a link. Latency occupies no line: the next bytes may follow at once.
class SimulatedLink {
 public:
  explicit SimulatedLink(const LinkModel& model)
      : up_(model.up), down_(model.down), latency_(model.latency) {}

  // When bytes that leave one side at `time` are all at the other.
  Seconds send_up(Seconds time, double bytes) { return up_.pass(time, bytes) + latency_; }
  Seconds send_down(Seconds time, double bytes) { return down_.pass(time, bytes) + latency_; }

 private:
  Fifo up_;
  Fifo down_;
  Seconds latency_;
};

}  // namespace longhaul
