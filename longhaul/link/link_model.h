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

// When bytes have come through.
struct Passage {
  Seconds first_byte{};
  Seconds end{};
};

// A line that serves what it is given in order, one at a time.
class Fifo {
 public:
  explicit Fifo(RateTrace rate) : rate_(std::move(rate)) {}

  // For bytes that are handed over at `time`. Times must not go back.
  Passage pass(Seconds time, double bytes) {
    const Seconds begin = std::max(time, free_at_);
    free_at_ = rate_.finish(begin, bytes);
    return {.first_byte = begin, .end = free_at_};
  }

  [[nodiscard]] Seconds free_at() const { return free_at_; }
  void set_free_at(Seconds time) { free_at_ = time; }

 private:
  RateTrace rate_;
  Seconds free_at_{};
};

// Both directions of a link. Latency occupies no line: the next bytes may follow at once.
class SimulatedLink {
 public:
  explicit SimulatedLink(const LinkModel& model)
      : up_(model.up), down_(model.down), latency_(model.latency) {}

  // When bytes that leave one side at `time` are at the other.
  Passage send_up(Seconds time, double bytes) { return later(up_.pass(time, bytes)); }
  Passage send_down(Seconds time, double bytes) { return later(down_.pass(time, bytes)); }

  // All that changes: when each line is free again.
  [[nodiscard]] Fifo& up() { return up_; }
  [[nodiscard]] Fifo& down() { return down_; }

 private:
  [[nodiscard]] Passage later(const Passage& passage) const {
    return {.first_byte = passage.first_byte + latency_, .end = passage.end + latency_};
  }

  Fifo up_;
  Fifo down_;
  Seconds latency_;
};

}  // namespace longhaul
