// How far rates may fall without warning: by as much as those of the run have varied, and by a
// factor of three as long as little is known of them.
#pragma once

#include "longhaul/plan/conditions.h"

namespace longhaul {

class FallRisk {
 public:
  // At the end of each round, or of so much of one.
  void note(const Conditions& replicas, double rounds = 1);

  // How many times lower the rates may be the moment after.
  [[nodiscard]] double factor() const;

 private:
  static constexpr double kMostSpread = 1.0986122886681098;  // log 3

  double rounds_ = 0;
  double mean_ = 0;              // of the slowest link's rate, in the logarithm
  double spread_ = kMostSpread;  // mean distance from it
};

}  // namespace longhaul
