#include "trainer/collective_planner.h"

#include <algorithm>
#include <utility>

namespace longhaul::trainer {
namespace {

constexpr Seconds kLeastTransfer{1e-6};

// Layers are gathered, or summed, one after the other: up and down do not overlap.
PlannerOptions one_line(PlannerOptions options) {
  options.is_one_way = options.kind == PlannerKind::kLayers;
  return options;
}

}  // namespace

CollectivePlanner::CollectivePlanner(const EngineOptions& options, std::size_t elements,
                                     Seconds computing)
    : planner_(make_planner(one_line(planner_options(options)),
                            RoundSizes(options.recipe.codec, elements, options.replicas, {},
                                       WayDown::kForwarded, options.layers))),
      is_by_layer_(options.recipe.planner == PlannerKind::kLayers),
      plan_(options.recipe.plan),
      ranks_(options.replicas, Measured{.up = RateEstimator(kTrustedDuration),
                                        .down = RateEstimator(kTrustedDuration)}),
      guess_(computing) {}

void CollectivePlanner::note(const std::vector<Turn>& turns) {
  clock_ = turns.front().clock;
  // The rank that came last has not waited for others: its time is that of the messages alone.
  const Seconds least = std::ranges::min(turns, {}, &Turn::header_time).header_time;
  if (least.count() > 0) trips_.add(time_after(TimePoint{}, clock_), least);
  const Seconds round_trip = trips_.least().value_or(Seconds(0));
  for (std::size_t rank = 0; rank < turns.size(); ++rank) {
    const Turn& turn = turns[rank];
    Measured& measured = ranks_[rank];
    measured.latency = round_trip / 2;
    if (turn.computing.count() > 0) measured.compute.add(turn.computing);
    if (turn.payload_bytes == 0) continue;
    // A plan counts one payload up and those of the others down, one after the other; a schedule of
    // layers one payload on one line.
    const double payloads = is_by_layer_ ? 1.0 : static_cast<double>(turns.size());
    const TransferSample sample{
        .bytes = payloads * static_cast<double>(turn.payload_bytes),
        .duration = std::max(turn.payload_time - round_trip, kLeastTransfer)};
    measured.up.add(sample);
    measured.down.add(sample);
  }
}

Conditions CollectivePlanner::conditions() const {
  Conditions all;
  for (const Measured& rank : ranks_) {
    all.push_back(rank.conditions());
    if (all.back().compute.count() == 0) all.back().compute = guess_;
  }
  return cost_.set_in(std::move(all));
}

Decision CollectivePlanner::first() {
  Decision decision = planner_->first(conditions());
  plan_ = decision.plan;
  return decision;
}

std::optional<Decision> CollectivePlanner::round_closed(RoundId id,
                                                        std::span<const WeightedPayload> sent,
                                                        const CheckedPayload& mean) {
  const Conditions now = conditions();
  RoundSize size;
  for (const WeightedPayload& one : sent)
    size.up = std::max(size.up, static_cast<double>(one.payload.size()));
  size.down = size.up * static_cast<double>(sent.size() - 1);
  cost_.add(id.step, clock_, plan_, size, now);
  return adopt(planner_->round_closed(facts_of(sent, mean, now, plan_)));
}

std::optional<Decision> CollectivePlanner::round_averaged() {
  return adopt(planner_->round_closed({.replicas = conditions(), .current = plan_}));
}

std::optional<Decision> CollectivePlanner::adopt(std::optional<Decision> decision) {
  if (decision) plan_ = decision->plan;
  return decision;
}

}  // namespace longhaul::trainer
