#include "longhaul/lab/live_planner.h"

#include <utility>

#include "longhaul/plan/measurements.h"

namespace longhaul::lab {
namespace {

constexpr double kProbeBytes = 1e5;

TransferSample probe(const RateTrace& rate, Seconds time) {
  return {.bytes = kProbeBytes, .duration = rate.finish(time, kProbeBytes) - time};
}

Bandwidth truth(const RateTrace& rate, Seconds time) {
  const TransferSample sample = probe(rate, time);
  return {.bytes_per_second = sample.bytes / sample.duration.count()};
}

}  // namespace

LivePlanner::LivePlanner(const PlannerOptions& options, const Scenario& scenario,
                         const std::vector<SimulatedPeer>& peers, RoundSizes sizes)
    : planner_(make_planner(options, std::move(sizes))),
      knows_links_(options.kind == PlannerKind::kClairvoyant),
      peers_(peers) {
  for (const SimulatedPeer& peer : peers) {
    const ReplicaOptions& replica = scenario.replicas[measured_.size()];
    Measured& measured = measured_.emplace_back();
    measured.compute.add(replica.step_time);  // paced, so every step takes this long
    measured.latency = replica.link.latency;  // half a ping, which nothing delays
    measured.up.add(probe(peer.link.up, Seconds(0)));
    measured.down.add(probe(peer.link.down, Seconds(0)));
  }
  adopt(0, Seconds(0), planner_->first(conditions(Seconds(0))));
}

void LivePlanner::adopt(std::size_t step, Seconds time, const Decision& decision) {
  plan_ = decision.plan;
  decisions_.push_back({.step = step,
                        .time = time,
                        .plan = decision.plan,
                        .predicted_step_time = decision.step_time,
                        .reason = decision.reason});
}

void LivePlanner::note(const Transfer& transfer) {
  if (transfer.bytes > 0) seen_.push_back(transfer);
}

// A transfer is known once it has ended: the hub sees uploads end, and replicas report the rest
// with their next upload.
void LivePlanner::learn_until(Seconds time) {
  std::erase_if(seen_, [&](const Transfer& transfer) {
    if (transfer.end > time) return false;
    Measured& measured = measured_[transfer.replica];
    (transfer.is_up ? measured.up : measured.down)
        .add({.bytes = static_cast<double>(transfer.bytes),
              .duration = transfer.end - transfer.first_byte});
    return true;
  });
}

Conditions LivePlanner::conditions(Seconds time) const {
  // From an announcement until the first bytes of the new plan, about half a loop passes.
  const Seconds then = decisions_.empty() ? time
                                          : time + decisions_.back().predicted_step_time *
                                                       (0.5 * (plan_.delay_steps + 1));
  Conditions all;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    all.push_back(measured_[i].conditions());
    if (!knows_links_) continue;
    all.back().up = truth(peers_[i].link.up, then);
    all.back().down = truth(peers_[i].link.down, then);
  }
  return all;
}

std::optional<Plan> LivePlanner::round_closed(const ClosedRound& round) {
  learn_until(round.time);
  const std::optional<Decision> decision =
      planner_->round_closed(facts_of(round.sent, round.mean, conditions(round.time), plan_));
  if (!decision) return std::nullopt;
  adopt(static_cast<std::size_t>(round.id.step), round.time, *decision);
  return plan_;
}

}  // namespace longhaul::lab
