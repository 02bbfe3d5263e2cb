#include "longhaul/plan/step_time.h"

#include <algorithm>

#include "longhaul/base/check.h"

namespace longhaul {

Seconds average_step_time(std::span<const StepCost> replicas, int delay_steps) {
  LONGHAUL_CHECK_GE(delay_steps, 0);
  Seconds slowest{};
  for (const StepCost& replica : replicas) {
    const Seconds sending(replica.bytes_up / replica.up.bytes_per_second);
    const Seconds receiving(replica.bytes_down / replica.down.bytes_per_second);
    // Every loop goes hub → replica → hub, so the slowest replica's own loop bounds everyone,
    // however they mix.
    const Seconds loop = replica.compute + 2 * replica.latency + sending + receiving;
    slowest = std::max({slowest, replica.compute, sending, receiving, loop / (delay_steps + 1.0)});
  }
  return slowest;
}

}  // namespace longhaul
