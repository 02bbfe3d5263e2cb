// HubCore: what it knows of the links, for planners.
#include <algorithm>

#include "longhaul/exchange/protocol.h"
#include "longhaul/hub/hub_core.h"

namespace longhaul {
namespace {

// Planners divide by what replicas say they measured: only what can be is taken.
constexpr double kMostSampleBytes = 1e15;

// A probe fills the line for a hundredth of the time.
constexpr Seconds kProbeEvery{5.0};
constexpr Seconds kProbeDuration{0.05};
constexpr std::size_t kLeastProbeBytes = 4096;

// All of a short transfer may come at once.
bool is_plausible(const v1::Sample& sample) {
  return sample.bytes() >= 1 && sample.bytes() < kMostSampleBytes &&
         (sample.duration_s() == 0 || longhaul::is_plausible(sample.duration_s()));
}

std::size_t probe_bytes(const RateEstimator& estimator) {
  const double bytes = estimator.typical()->bytes_per_second * kProbeDuration.count();
  return static_cast<std::size_t>(
      std::clamp(bytes, static_cast<double>(kLeastProbeBytes), static_cast<double>(kProbeBytes)));
}

}  // namespace

void HubCore::measure(Replica& replica, const v1::Report& report) const {
  ReplicaStatus& status = replica.status;
  if (report.step() > 0) status.step = report.step();  // else it only tells what it measured
  if (is_plausible(report.compute_s())) {
    status.loss = report.loss();
    status.waiting_share = report.waiting_share();
    status.measured.compute = Seconds(report.compute_s());
  }
  if (is_plausible(report.round_trip_s()))
    status.measured.latency = Seconds(report.round_trip_s() / 2);
  for (const v1::Sample& sample : report.down()) {
    if (is_plausible(sample) &&
        status.measured.down.add(
            {.bytes = sample.bytes(), .duration = Seconds(sample.duration_s())}))
      replica.down_known = now_;
  }
}

// Training's own messages may be too small to tell what a link can do.
void HubCore::probe_idle_links() {
  if (!training_ || setup_.training.engine.recipe.planner == PlannerKind::kNone) return;
  for (auto& [name, replica] : replicas_) {
    const Measured& measured = replica.status.measured;
    if (!replica.status.is_enrolled || !measured.is_complete()) continue;
    if (now_ - replica.up_known > kProbeEvery) {
      replica.up_known = now_;  // or will be
      Frame frame;
      frame.mutable_send_probe()->set_bytes(probe_bytes(measured.up));
      (void)replica.session->send(std::move(frame));
    }
    if (now_ - replica.down_known > kProbeEvery) {
      replica.down_known = now_;
      send_probe(*replica.session, probe_bytes(measured.down));
    }
  }
}

void HubCore::send_probe(Session& session, std::size_t bytes) {
  session.lanes.send({.cargo = Cargo::kProbe, .step = replica_of(session).probes++},
                     std::make_shared<const ByteBuffer>(bytes, std::byte{0x55}));
}

Conditions HubCore::conditions() const {
  Conditions all;
  for (const auto& [name, replica] : replicas_) {
    if (replica.session == nullptr) continue;
    if (!replica.status.measured.is_complete()) return {};
    all.push_back(replica.status.measured.conditions());
  }
  return all;
}

}  // namespace longhaul
