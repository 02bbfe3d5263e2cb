#include "longhaul/plan/fall_risk.h"

#include <algorithm>
#include <cmath>

namespace longhaul {
namespace {

constexpr double kMemory = 100;    // rounds
constexpr double kDisbelief = 50;  // rounds that a calm start must last to count as much as none

}  // namespace

void FallRisk::note(const Conditions& replicas) {
  double slowest = HUGE_VAL;
  for (const ReplicaConditions& replica : replicas)
    slowest = std::min({slowest, replica.up.bytes_per_second, replica.down.bytes_per_second});
  if (!(slowest > 0 && std::isfinite(slowest))) return;
  const double rate = std::log(slowest);
  rounds_ = std::min(rounds_ + 1, kMemory);
  mean_ += (rate - mean_) / rounds_;
  spread_ += (std::min(std::abs(rate - mean_), kMost) - spread_) / (rounds_ + kDisbelief);
}

double FallRisk::factor() const { return std::exp(spread_); }

}  // namespace longhaul
