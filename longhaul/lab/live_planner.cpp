#include "longhaul/lab/live_planner.h"

#include <cmath>

#include "longhaul/codec/payload.h"

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

// In double: the squares of a run that diverges leave the range of float before its values do.
double square_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum;
}

double square_of(const Submission& submission, std::vector<float>& scratch) {
  if (submission.payload.empty()) return 0;
  std::ranges::fill(scratch, 0.0F);
  // The network has parsed it before.
  add(PayloadView::parse(submission.payload, scratch.size()).value(), 1.0F, scratch);
  return square_of(scratch);
}

}  // namespace

LivePlanner::LivePlanner(const Recipe& recipe, const Scenario& scenario,
                         const std::vector<SimulatedPeer>& peers, std::size_t elements,
                         std::uint64_t seed)
    : scenario_(scenario),
      planner_(make_planner({.kind = recipe.planner,
                             .plan = recipe.plan,
                             .may_look_ahead = scenario.train.optimizer != "adamw",
                             .seed = seed},
                            RoundSizes(recipe.codec, elements, peers.size()))),
      knows_links_(recipe.planner == PlannerKind::kClairvoyant) {
  for (const SimulatedPeer& peer : peers) {
    Link& link = links_.emplace_back(Link{.model = peer.link, .up = {}, .down = {}});
    link.up.add(probe(peer.link.up, Seconds(0)));
    link.down.add(probe(peer.link.down, Seconds(0)));
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
    Link& link = links_[transfer.replica];
    (transfer.is_up ? link.up : link.down)
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
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const ReplicaSettings& replica = scenario_.replicas[i];
    all.push_back(
        {.compute = replica.step_time,     // paced, so every step takes this long
         .latency = replica.link.latency,  // half a ping, which nothing delays
         .up = knows_links_ ? truth(links_[i].model.up, then) : *links_[i].up.low(),
         .down = knows_links_ ? truth(links_[i].model.down, then) : *links_[i].down.low()});
  }
  return all;
}

std::optional<Plan> LivePlanner::round_closed(const ClosedRound& round) {
  learn_until(round.time);
  std::vector<float> scratch(round.mean.size());
  std::vector<WeightedSquare> messages;
  for (const Submission& submission : round.submissions)
    messages.push_back({.weight = static_cast<double>(submission.weight),
                        .square = square_of(submission, scratch)});
  const double mean_square = square_of(round.mean);
  const std::optional<Decision> decision =
      planner_->round_closed({.replicas = conditions(round.time),
                              .agreement = agreement_of(messages, mean_square),
                              .mean_norm = std::sqrt(mean_square),
                              .current = plan_});
  if (!decision) return std::nullopt;
  adopt(static_cast<std::size_t>(round.id.step), round.time, *decision);
  return plan_;
}

}  // namespace longhaul::lab
