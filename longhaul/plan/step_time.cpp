#include "longhaul/plan/step_time.h"

#include <algorithm>

namespace longhaul {

Paces::Paces(const Conditions& replicas) {
  links_.reserve(replicas.size());
  for (const ReplicaConditions& replica : replicas) {
    const Link& link = links_.emplace_back(
        Link{.compute = replica.compute.count(),
             .round_trip = 2 * replica.latency.count() + replica.round_wait.count(),
             .per_byte_up = 1 / replica.up.bytes_per_second,
             .per_byte_down = 1 / replica.down.bytes_per_second});
    least_compute_ = links_.size() == 1 ? link.compute : std::min(least_compute_, link.compute);
    compute_ = std::max(compute_, link.compute);
    round_work_ = std::max(round_work_, replica.round_work.count());
    per_byte_up_ = std::max(per_byte_up_, link.per_byte_up);
    per_byte_down_ = std::max(per_byte_down_, link.per_byte_down);
  }
}

Pace Paces::of(const RoundSize& size, int period_steps, double slower) const {
  return {*this, size, period_steps, slower};
}

// Every loop goes hub → replica → hub, so the slowest replica's own loop bounds everyone, however
// they mix.
double Paces::longest_loop(double computed, double up, double down) const {
  double longest = 0;
  for (const Link& link : links_) longest = std::max(longest, link.loop(computed, up, down));
  return longest;
}

std::size_t Paces::slowest(const RoundSize& size) const {
  const auto found = std::ranges::max_element(
      links_, {}, [&](const Link& link) { return link.loop(1, size.up, size.down); });
  return static_cast<std::size_t>(found - links_.begin());
}

Pace::Pace(const Paces& paces, const RoundSize& size, int period_steps, double slower)
    : paces_(&paces),
      up_(slower * size.up),
      down_(slower * size.down),
      least_(paces.least(size, period_steps, slower).count()),
      shortest_(paces.longest_loop(1, up_, down_)) {}

}  // namespace longhaul
