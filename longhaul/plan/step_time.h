// How long a step takes on a given network, by formula. The lab measures the same by events, and
// never sees this file.
#pragma once

#include <span>

#include "longhaul/base/units.h"

namespace longhaul {

// One replica's share of a round: its compute time, its link, and what it sends and receives over
// it.
struct StepCost {
  Seconds compute{};
  Seconds latency{};  // one way
  Bandwidth up;
  Bandwidth down;
  double bytes_up = 0;
  double bytes_down = 0;
};

// T_avg of DD-EF-SGD: the slowest of computing, sending, receiving, and of the whole loop spread
// over delay + 1 steps. A slope: it holds over whole multiples of delay + 1 steps once the pipeline
// is full.
Seconds average_step_time(std::span<const StepCost> replicas, int delay_steps);

}  // namespace longhaul
