// How long a step takes on a given network, by formula. The lab measures the same by events, and
// its clock never sees this file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/round_sizes.h"

namespace longhaul {

class Pace;

// From the merge of a mean, to the end of the next period, to the merge of the mean that it is in.
struct Loop {
  Loop(int delay_steps, int period_steps)
      : steps(delay_steps - delay_steps % period_steps + period_steps),
        computed(steps - delay_steps),
        share(1 / steps) {}

  double steps;     // that it lasts: whole periods, more than the delay
  double computed;  // of them, before an update leaves; the others hide its way
  double share;     // of it, in each of its steps
};

// The conditions of all replicas, divided once: a search asks for the pace of many sizes.
class Paces {
 public:
  explicit Paces(const Conditions& replicas);

  // For rounds of that size, one in each period. `slower`: as if every rate were so many times
  // lower. Valid as long as this is.
  [[nodiscard]] Pace of(const RoundSize& size, int period_steps = 1, double slower = 1) const;
  // With a delay so long that only rates matter: the slowest of being busy, sending and receiving.
  [[nodiscard]] Seconds least(const RoundSize& size, int period_steps = 1,
                              double slower = 1) const {
    const double of_a_byte = slower / period_steps;
    return Seconds(std::max({busy(period_steps).count(), size.up * per_byte_up_ * of_a_byte,
                             size.down * per_byte_down_ * of_a_byte}));
  }
  // The slowest replica's: no plan is faster.
  [[nodiscard]] Seconds computing() const { return Seconds(compute_); }
  // Computing, and a step's share of the work of a round.
  [[nodiscard]] Seconds busy(int period_steps) const {
    return Seconds(compute_ + round_work_ / period_steps);
  }
  // The replica whose own loop is the longest: it sets the pace.
  [[nodiscard]] std::size_t slowest(const RoundSize& size) const;

 private:
  friend class Pace;
  struct Link {
    double compute = 0;
    double round_trip = 0;  // with what a round waits for beside it
    double per_byte_up = 0;
    double per_byte_down = 0;

    [[nodiscard]] double loop(double computed, double up_bytes, double down_bytes) const {
      return computed * compute + round_trip + up_bytes * per_byte_up + down_bytes * per_byte_down;
    }
  };
  // The time of all replicas, with so many steps of computing in it and without waiting.
  [[nodiscard]] double longest_loop(double computed, double up, double down) const;

  std::vector<Link> links_;
  double least_compute_ = 0;  // the fastest of all
  double compute_ = 0;        // each the slowest of all
  double round_work_ = 0;
  double per_byte_up_ = 0;
  double per_byte_down_ = 0;
};

// The conditions under the sizes of a round and a period; the delay is open.
class Pace {
 public:
  [[nodiscard]] Seconds at(const Loop& loop) const {
    return Seconds(std::max(least_, length(loop).count() / loop.steps));
  }
  // The time of the loop, without waiting.
  [[nodiscard]] Seconds length(const Loop& loop) const {
    return Seconds(loop.computed == 1 ? shortest_
                                      : paces_->longest_loop(loop.computed, up_, down_));
  }
  // No more than that, and quickly: the same where all compute equally fast.
  [[nodiscard]] Seconds at_least(const Loop& loop) const {
    const double length = shortest_ + (loop.computed - 1) * paces_->least_compute_;
    return Seconds(std::max(least_, length * loop.share));
  }

 private:
  friend class Paces;
  Pace(const Paces& paces, const RoundSize& size, int period_steps, double slower);

  const Paces* paces_;
  double up_;
  double down_;
  double least_;
  double shortest_;  // loop, with one step of computing in it
};

// T_avg: the slowest of being busy, sending, receiving, and of the whole loop spread over the steps
// that it takes. With a round in every step these are delay + 1. A slope: it holds over whole
// multiples of them once the pipeline is full.
inline Seconds step_time(const Conditions& replicas, const RoundSize& size, int delay_steps,
                         int period_steps = 1) {
  return Paces(replicas).of(size, period_steps).at({delay_steps, period_steps});
}

}  // namespace longhaul
