#include "longhaul/plan/step_time.h"

#include <algorithm>

namespace longhaul {

Paces::Paces(const Conditions& replicas) {
  links_.reserve(replicas.size());
  for (const ReplicaConditions& replica : replicas) {
    const Link& link =
        links_.emplace_back(Link{.still = (replica.compute + 2 * replica.latency).count(),
                                 .per_byte_up = 1 / replica.up.bytes_per_second,
                                 .per_byte_down = 1 / replica.down.bytes_per_second});
    compute_ = std::max(compute_, replica.compute.count());
    per_byte_up_ = std::max(per_byte_up_, link.per_byte_up);
    per_byte_down_ = std::max(per_byte_down_, link.per_byte_down);
  }
}

Pace Paces::of(const RoundSize& size, double slower) const {
  const double up = slower * size.up;
  const double down = slower * size.down;
  // Every loop goes hub → replica → hub, so the slowest replica's own loop bounds everyone, however
  // they mix.
  double loop = 0;
  for (const Link& link : links_)
    loop = std::max(loop, link.still + up * link.per_byte_up + down * link.per_byte_down);
  return {.least = Seconds(std::max({compute_, up * per_byte_up_, down * per_byte_down_})),
          .loop = Seconds(loop)};
}

}  // namespace longhaul
