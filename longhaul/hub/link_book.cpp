#include "longhaul/hub/link_book.h"

#include <algorithm>
#include <utility>

#include "longhaul/exchange/protocol.h"
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

void LinkBook::begin(const std::string& name, double compute_s) {
  Link& link = links_[name];
  link.up.probes_begun = link.up.probes_ended = 0;
  link.down.probes_begun = link.down.probes_ended = 0;
  if (is_plausible(compute_s) && link.measured.compute.typical().count() == 0)
    link.measured.compute.add(Seconds(compute_s));
}

void LinkBook::take_report(const std::string& name, const v1::Report& report, TimePoint now) {
  Link& link = links_.at(name);
  if (is_plausible(report.compute_s())) link.measured.compute.add(Seconds(report.compute_s()));
  if (is_plausible(report.round_trip_s()))
    link.measured.latency = Seconds(report.round_trip_s() / 2);
  // A probe is reported as soon as it has come: its sample is the last.
  const bool has_probe = report.probes() > link.down.probes_ended;
  link.down.probes_ended = report.probes();
  for (int i = 0; i < report.down_size(); ++i) {
    const v1::Sample& sample = report.down(i);
    if (can_be(sample))
      learn(link.down, link.measured.down,
            {.bytes = sample.bytes(),
             .duration = Seconds(sample.duration_s()),
             .is_probe = has_probe && i + 1 == report.down_size()},
            now);
  }
}

void LinkBook::take_arrival(const std::string& name, const Arrival& arrival, TimePoint now) {
  Link& link = links_.at(name);
  const bool is_probe = arrival.id.cargo == Cargo::kProbe;
  learn(link.up, link.measured.up,
        {.bytes = static_cast<double>(arrival.timed_bytes),
         .duration = arrival.duration,
         .is_probe = is_probe},
        now);
  if (is_probe) ++link.up.probes_ended;
}

const Measured& LinkBook::measured(const std::string& name) const {
  const auto link = links_.find(name);
  return link == links_.end() ? unknown_.measured : link->second.measured;
}

void LinkBook::learn(Direction& direction, RateEstimator& rate, const TransferSample& sample,
                     TimePoint now) {
  const bool is_level_known = rate.add(sample);
  if (rate.is_doubted()) direction.is_doubted = true;
  if (is_level_known || sample.is_probe) {
    direction.since = now;
    direction.is_doubted = false;
  }
}

bool LinkBook::wants_first_probe(const std::string& name) const {
  return is_planned_ && !measured(name).is_complete();
}

void LinkBook::send_first_probe(Peer& peer) {
  send_probe(peer, links_.at(peer.name()).down, kProbeBytes);
}

// A link that has become slow is not made slower: the next probe waits for the last one.
void LinkBook::probe_idle(Peer& peer, std::size_t most, TimePoint now) {
  Link& link = links_.at(peer.name());
  if (!is_planned_ || !link.measured.is_complete()) return;
  const auto is_due = [now](const Direction& way) {
    return now - way.since > (way.is_doubted ? kProbeInDoubtEvery : kProbeEvery) &&
           way.probes_begun <= way.probes_ended;
  };
  if (is_due(link.up)) {
    link.up.since = now;  // or will be
    link.up.probes_begun = link.up.probes_ended + 1;
    Frame frame;
    frame.mutable_send_probe()->set_bytes(probe_bytes(link.measured.up, link.up.is_doubted, most));
    (void)peer.send(std::move(frame));
  }
  if (is_due(link.down)) {
    link.down.since = now;
    send_probe(peer, link.down, probe_bytes(link.measured.down, link.down.is_doubted, most));
  }
}

void LinkBook::send_probe(Peer& peer, Direction& down, std::size_t bytes) {
  peer.lanes.send({.cargo = Cargo::kProbe, .step = down.probes_begun++},
                  std::make_shared<const ByteBuffer>(bytes, std::byte{0x55}));
}

Conditions LinkBook::of_members(const Roster& roster) const {
  Conditions all;
  for (const auto& [name, replica] : roster.replicas()) {
    if (!replica.is_enrolled) continue;
    if (!measured(name).is_complete()) return {};
    all.push_back(measured(name).conditions());
  }
  return cost_.set_in(std::move(all));
}

Conditions LinkBook::of_starters(const Roster& roster) const {
  Conditions all;
  for (const auto& [control, peer] : roster.peers()) {
    const Measured& link = measured(peer->name());
    if (!peer->is_connected()) continue;
    if (is_planned_ && !(link.is_complete() && link.latency.count() > 0)) continue;
    all.push_back(is_planned_ ? link.conditions() : ReplicaConditions{});
  }
  return all;
}

void LinkBook::round_closed(const RoundOutcome& round, const Plan& plan, const Conditions& replicas,
                            TimePoint now) {
  last_size_ = round.size;
  cost_.add(round.round.id.step, now.time_since_epoch(), plan, round.size, replicas);
}

Seconds LinkBook::predicted_step_time(const Conditions& replicas, const Plan& plan) const {
  if (replicas.empty()) return {};
  return longhaul::step_time(replicas, last_size_, plan.delay_steps, plan.period_steps);
}

}  // namespace longhaul
