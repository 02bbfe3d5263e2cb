// HubCore: what it knows of the links, for planners.
#include <algorithm>
#include <utility>

#include "longhaul/exchange/protocol.h"
#include "longhaul/hub/hub_core.h"
#include "longhaul/plan/step_time.h"

namespace longhaul {
namespace {

// Planners divide by what replicas say they measured: only what can be is taken.
constexpr double kMostSampleBytes = 1e15;

// At the rate that is known, a probe fills the line for a hundredth of the time, or for a few
// kilobytes on a very slow one; for a twentieth while transfers look slow that are too short to
// tell.
constexpr Seconds kProbeEvery{5.0};
constexpr Seconds kProbeDuration{0.05};
constexpr Seconds kProbeInDoubtEvery{0.5};
constexpr Seconds kProbeInDoubtDuration{0.025};
constexpr double kLeastProbeBytes = 4096;

// All of a short transfer may come at once.
bool can_be(const v1::Sample& sample) {
  return sample.bytes() >= 1 && sample.bytes() < kMostSampleBytes &&
         (sample.duration_s() == 0 || is_plausible(sample.duration_s()));
}

// `most`: of any transfer.
std::size_t probe_bytes(const RateEstimator& estimator, bool is_doubted, std::size_t most) {
  const double bytes = estimator.typical()->bytes_per_second *
                       (is_doubted ? kProbeInDoubtDuration : kProbeDuration).count();
  const auto wanted = static_cast<std::size_t>(
      std::clamp(bytes, kLeastProbeBytes, static_cast<double>(kMostIdleProbeBytes)));
  return std::min(wanted, most);
}

}  // namespace

void HubCore::measure(Replica& replica, const v1::Report& report) {
  ReplicaStatus& status = replica.status;
  if (report.step() > 0) status.step = report.step();  // else it only tells what it measured
  if (is_plausible(report.compute_s())) {
    status.loss = report.loss();
    status.waiting_share = report.waiting_share();
    if (report.passes() > 0) status.passes = report.passes();
    status.measured.compute.add(Seconds(report.compute_s()));
  }
  if (is_plausible(report.round_trip_s()))
    status.measured.latency = Seconds(report.round_trip_s() / 2);
  // A probe is reported as soon as it has come: its sample is the last.
  const bool has_probe = report.probes() > replica.session->probes.told;
  replica.session->probes.told = report.probes();
  for (int i = 0; i < report.down_size(); ++i) {
    const v1::Sample& sample = report.down(i);
    if (can_be(sample))
      learn(replica.down, status.measured.down,
            {.bytes = sample.bytes(),
             .duration = Seconds(sample.duration_s()),
             .is_probe = has_probe && i + 1 == report.down_size()});
  }
}

void HubCore::learn(Knowledge& known, RateEstimator& rate, const TransferSample& sample) const {
  const Told told = rate.add(sample);
  if (told == Told::kDoubt) known.is_doubted = true;
  if (told == Told::kLevel || sample.is_probe) known = {.since = now_};
}

bool HubCore::is_old(const Knowledge& known) const {
  return now_ - known.since > (known.is_doubted ? kProbeInDoubtEvery : kProbeEvery);
}

// Training's own messages may be too small to tell what a link can do. One at a time: a link that
// has become slow is not made slower.
void HubCore::probe_idle_links() {
  if (!training_ || options_.training.engine.recipe.planner == PlannerKind::kNone) return;
  for (auto& [name, replica] : replicas_) {
    const Measured& measured = replica.status.measured;
    if (!replica.status.is_enrolled || !measured.is_complete()) continue;
    Session& session = *replica.session;
    const std::size_t most = limits().most_bytes;
    if (is_old(replica.up) && session.probes.asked <= session.probes.came) {
      replica.up.since = now_;  // or will be
      session.probes.asked = session.probes.came + 1;
      Frame frame;
      frame.mutable_send_probe()->set_bytes(probe_bytes(measured.up, replica.up.is_doubted, most));
      (void)session.send(std::move(frame));
    }
    if (is_old(replica.down) && session.probes.sent <= session.probes.told) {
      replica.down.since = now_;
      send_probe(session, probe_bytes(measured.down, replica.down.is_doubted, most));
    }
  }
}

void HubCore::send_probe(Session& session, std::size_t bytes) {
  session.lanes.send({.cargo = Cargo::kProbe, .step = session.probes.sent++},
                     std::make_shared<const ByteBuffer>(bytes, std::byte{0x55}));
}

Conditions HubCore::conditions() const {
  Conditions all;
  for (const auto& [name, replica] : replicas_) {
    if (!replica.status.is_enrolled) continue;
    if (!replica.status.measured.is_complete()) return {};
    all.push_back(replica.status.measured.conditions());
  }
  return cost_.set_in(std::move(all));
}

void HubCore::measure(const RoundOutcome& round, const Conditions& replicas) {
  last_size_ = round.size;
  cost_.add({.step = round.round.step,
             .closed_at = now_.time_since_epoch(),
             .plan = training_->standing().plan,
             .size = round.size},
            replicas);
}

Seconds HubCore::predicted_step_time() const {
  const Conditions replicas = conditions();
  if (!training_ || replicas.empty()) return {};
  const Plan& plan = training_->standing().plan;
  return longhaul::step_time(replicas, last_size_, plan.delay_steps, plan.period_steps);
}

}  // namespace longhaul
