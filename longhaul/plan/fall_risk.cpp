#include "longhaul/plan/fall_risk.h"

#include <algorithm>
#include <cmath>

namespace longhaul {
namespace {

constexpr double kMemory = 100;     // of the mean, in rounds
constexpr double kBeforehand = 50;  // rounds that the factor of three counts for

}  // namespace

void FallRisk::note(const Conditions& replicas, double rounds) {
  double slowest = HUGE_VAL;
  for (const ReplicaConditions& replica : replicas)
    slowest = std::min({slowest, replica.up.bytes_per_second, replica.down.bytes_per_second});
  if (!(slowest > 0 && std::isfinite(slowest))) return;
  const double rate = std::log(slowest);
  rounds_ = std::min(rounds_ + rounds, kMemory);
  mean_ += rounds * (rate - mean_) / rounds_;
  const double distance = std::min(std::abs(rate - mean_), kMostSpread);
  spread_ += rounds * (distance - spread_) / (rounds_ + kBeforehand);
}

double FallRisk::factor() const { return std::exp(spread_); }

}  // namespace longhaul
