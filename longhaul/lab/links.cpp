#include "longhaul/lab/links.h"

#include <limits>
#include <string>
#include <utility>

#include "longhaul/base/file.h"

namespace longhaul::lab {
namespace {

Result<RateTrace> read_trace(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
  Result<ByteBuffer> bytes = read_file(path, kMostBytes);
  if (!bytes.ok()) return std::move(bytes).error().within("trace");
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const bool is_csv = text.find(',') != std::string_view::npos;
  Result<RateTrace> trace = is_csv ? parse_csv_trace(text) : parse_mahimahi_trace(text);
  if (!trace.ok()) return Error(trace.error()).within(path);
  return trace;
}

Result<RateTrace> rate_of(const LinkOptions& link, Bandwidth mean, std::uint64_t seed) {
  if (!link.trace.empty()) {
    const RateTrace trace = LONGHAUL_TRY(read_trace(link.trace));
    return trace.scaled_to(mean);
  }
  if (link.markov_spread <= 0) return RateTrace::constant(mean);
  return markov_trace(
      {.mean = mean, .spread = link.markov_spread, .mean_dwell = link.markov_dwell, .seed = seed});
}

}  // namespace

Result<std::vector<SimulatedPeer>> peers_of(const Scenario& scenario, std::uint64_t seed) {
  std::vector<SimulatedPeer> peers;
  for (std::size_t i = 0; i < scenario.replicas.size(); ++i) {
    const LinkOptions& link = scenario.replicas[i].link;
    const std::uint64_t own_seed = (seed * 1000 + i) * 2;
    const RateTrace up = LONGHAUL_TRY(rate_of(link, link.up, own_seed));
    const RateTrace down = LONGHAUL_TRY(rate_of(link, link.down, own_seed + 1));
    peers.push_back({.link = {.up = up, .down = down, .latency = link.latency},
                     .weight = static_cast<float>(scenario.replicas[i].weight)});
  }
  return peers;
}

std::vector<SimulatedPeer> free_peers_of(const Scenario& scenario) {
  const RateTrace free =
      RateTrace::constant({.bytes_per_second = std::numeric_limits<double>::infinity()});
  std::vector<SimulatedPeer> peers;
  for (const ReplicaOptions& replica : scenario.replicas) {
    peers.push_back({.link = {.up = free, .down = free, .latency = Seconds(0)},
                     .weight = static_cast<float>(replica.weight)});
  }
  return peers;
}

Conditions conditions_of(const Scenario& scenario) {
  Conditions links;
  for (const ReplicaOptions& replica : scenario.replicas)
    links.push_back({.compute = replica.step_time,
                     .latency = replica.link.latency,
                     .up = replica.link.up,
                     .down = replica.link.down});
  return links;
}

}  // namespace longhaul::lab
