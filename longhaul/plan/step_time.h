// How long a step takes on a given network, by formula. The lab measures the same by events, and
// its clock never sees this file.
#pragma once

#include <algorithm>
#include <vector>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/round_sizes.h"

namespace longhaul {

// What the sizes of a round make of the conditions; the delay is open.
struct Pace {
  Seconds least{};  // the slowest of computing, sending and receiving
  Seconds loop{};   // from a gradient to the merge of its mean, without waiting

  [[nodiscard]] Seconds at(int delay_steps) const {
    return std::max(least, loop / (delay_steps + 1.0));
  }
  // Would a longer delay save nothing?
  [[nodiscard]] bool is_hidden_at(int delay_steps) const {
    return loop <= least * (delay_steps + 1.0);
  }
};
// The conditions of all replicas, divided once: a search asks for the pace of many sizes.
class Paces {
 public:
  explicit Paces(const Conditions& replicas);

  // `slower`: as if every rate had fallen to that part of it.
  [[nodiscard]] Pace of(const RoundSize& size, double slower = 1) const;
  // Of the slowest: no plan is faster.
  [[nodiscard]] Seconds computing() const { return Seconds(compute_); }

 private:
  struct Link {
    double still = 0;  // computing and latency
    double per_byte_up = 0;
    double per_byte_down = 0;
  };
  std::vector<Link> links_;
  double compute_ = 0;  // each the slowest of all
  double per_byte_up_ = 0;
  double per_byte_down_ = 0;
};

// T_avg: the slowest of computing, sending, receiving, and of the whole loop spread over delay + 1
// steps. A slope: it holds over whole multiples of delay + 1 steps once the pipeline is full.
inline Seconds step_time(const Conditions& replicas, const RoundSize& size, int delay_steps) {
  return Paces(replicas).of(size).at(delay_steps);
}

}  // namespace longhaul
