// How long a step takes on a given network, by formula. The lab measures the same by events, and
// its clock never sees this file.
#pragma once

#include <algorithm>

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
// `slower`: as if every rate had fallen to that part of it.
Pace pace_of(const Conditions& replicas, const RoundSize& size, double slower = 1);

// T_avg: the slowest of computing, sending, receiving, and of the whole loop spread over delay + 1
// steps. A slope: it holds over whole multiples of delay + 1 steps once the pipeline is full.
inline Seconds step_time(const Conditions& replicas, const RoundSize& size, int delay_steps) {
  return pace_of(replicas, size).at(delay_steps);
}

// The slowest replica's compute time: no plan is faster.
Seconds least_step_time(const Conditions& replicas);

}  // namespace longhaul
