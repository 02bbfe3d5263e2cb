// Plans which parts of a model have a round in which step (DreamDDP), and plans anew when a link
// has changed. The parts are dense layers that travel on their own.
#pragma once

#include <optional>

#include "longhaul/plan/layer_schedule.h"
#include "longhaul/plan/planner.h"

namespace longhaul {

// The link that a schedule is for: all replicas wait for the slowest in each respect. A codec that
// makes updates smaller counts as a faster link.
LayerLink layer_link(const Conditions& replicas, const RoundSizes& sizes, double keep_ratio,
                     bool is_one_way = false);

// The course of a plan whose parts travel on their own, under these options.
LayerTimeline timeline_of(const Plan& plan, const PlannerOptions& options,
                          const Conditions& replicas, const RoundSizes& sizes);

// The prediction for a plan whose parts travel on their own; without a reason. `fall`: as in
// predicted().
Decision predicted_by_layer(const Plan& plan, const PlannerOptions& options,
                            const Conditions& replicas, const RoundSizes& sizes,
                            const IterationModel& model, double fall);

// The plan with the schedule of that policy, for its period, and what is predicted of it.
Decision scheduled(Plan plan, LayerPolicy policy, const PlannerOptions& options,
                   const Conditions& replicas, const RoundSizes& sizes);

class LayerPlanner final : public Planner {
 public:
  using Planner::Planner;

  Decision first(const Conditions& replicas) override;
  // Once in a period. A new schedule must shorten the step by kWorthASchedule; it holds from the
  // next period on.
  std::optional<Decision> round_closed(const RoundFacts& facts) override;

 private:
  static constexpr double kWorthASchedule = 1.05;

  std::size_t rounds_ = 0;  // since it last looked
};

}  // namespace longhaul
