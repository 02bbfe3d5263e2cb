#include "longhaul/plan/step_time.h"

namespace longhaul {

Pace pace_of(const Conditions& replicas, const RoundSize& size, double slower) {
  Pace pace;
  for (const ReplicaConditions& replica : replicas) {
    const Seconds sending(slower * size.up / replica.up.bytes_per_second);
    const Seconds receiving(slower * size.down / replica.down.bytes_per_second);
    pace.least = std::max({pace.least, replica.compute, sending, receiving});
    // Every loop goes hub → replica → hub, so the slowest replica's own loop bounds everyone,
    // however they mix.
    pace.loop = std::max(pace.loop, replica.compute + 2 * replica.latency + sending + receiving);
  }
  return pace;
}

Seconds least_step_time(const Conditions& replicas) {
  Seconds slowest{};
  for (const ReplicaConditions& replica : replicas) slowest = std::max(slowest, replica.compute);
  return slowest;
}

}  // namespace longhaul
