// The flagship: ratio, delay, period and merge rule together, by the least predicted time to the
// target T_avg · N, from what a run measures. Links fall without warning, so T_avg is the mean of
// what it is now and what it would be if rates fell. Holds no clock and no thread: observations in,
// decisions out.
//
// If the layers of the model are known, it also considers schedules of them (DreamDDP): each layer
// travels by itself, uncompressed, while others are computed.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/deco.h"
#include "longhaul/plan/fall_risk.h"
#include "longhaul/plan/iteration_model.h"
#include "longhaul/plan/layer_timeline.h"
#include "longhaul/plan/planner.h"
#include "longhaul/plan/round_sizes.h"
#include "longhaul/plan/step_time.h"

namespace longhaul {

constexpr int kMostAutoDelay = 16;
constexpr int kMostAutoPeriod = 32;
// A period above one is chosen where it is predicted to be so many times faster than none.
constexpr double kWorthAPeriod = 1.15;

constexpr Seconds kFullRound{0.05};
// No more changes than that in a minute, so that a person can follow; a plan that has become bad is
// left at once.
constexpr std::size_t kMostChangesAMinute = 5;

// A change between the whole model and its layers stalls every replica once, so it must be worth so
// much more.
constexpr double kWorthOtherParts = 1.1;

// The keep ratios that the planner chooses from: the limits, and ten round numbers in a decade
// (1 %, 1.25 %, 1.6 %, …). Measurements that differ by little mostly lead to the same plan, hence
// to the same course of training.
std::vector<double> round_ratios(const RatioRange& limits);

// Chooses ratio, delay, period and merge rule together, from what it measures.
class AutoPlanner final : public Planner {
 public:
  // With the kind kFrozen it keeps its first choice.
  AutoPlanner(RoundSizes sizes, const PlannerOptions& options);

  // The best plan for these conditions, as far as the replicas' agreement is known. Pure.
  [[nodiscard]] Decision best(const Conditions& replicas) const;

  void expect(std::size_t replicas) override;
  Decision first(const Conditions& replicas) override { return best(replicas); }

  // The best schedule of layers; nothing if the layers are not known, or replicas disagree so much
  // that they must look ahead. Takes milliseconds. Without a reason. Pure.
  [[nodiscard]] std::optional<Decision> best_by_layer(const Conditions& replicas) const;

  // A change must be worth it: better than keeping the current plan by more than a margin. Soon
  // after the last change, or after several within a minute, the current plan must have become bad.
  // Rounds that take less than kFullRound count as parts of one, here and in every memory: machines
  // are milliseconds early or late, which is much for a short one. The weight of a measurement is
  // the inverse of its variance, so a round of half the time counts for a quarter.
  std::optional<Decision> round_closed(const RoundFacts& facts) override;

 private:
  class Search;
  // A search for a schedule, and the circumstances that it was made for.
  struct Tried {
    LayerLink link;
    Seconds compute{};
    double fall = 1;
    std::optional<Plan> plan;
  };

  [[nodiscard]] Decision search(const Conditions& replicas) const;  // without its reason
  // The same, or the schedule that was found. `current` is in force.
  [[nodiscard]] Decision best_of_both(const Conditions& replicas, const Plan& current) const;
  [[nodiscard]] Decision prediction_of(const Conditions& replicas, const Plan& plan) const;
  // Searches for a schedule, if the circumstances are others than before.
  void try_layers(const Conditions& replicas);
  // The prediction for the schedule that was found; nothing if there is none.
  [[nodiscard]] std::optional<Decision> tried_layers(const Conditions& replicas) const;
  // With its reason. `other`: the best of the other kind, by layer or not.
  [[nodiscard]] Decision explained(const Conditions& replicas, Decision decision,
                                   const std::optional<Decision>& other) const;
  // Is the plan of the whole model, or of the layers that are known?
  [[nodiscard]] bool knows_parts_of(const Plan& plan) const;
  [[nodiscard]] IterationModel model_of(const Plan& plan) const;
  double pass_time(const RoundFacts& facts);
  void note_agreement(double agreement, double rounds);
  [[nodiscard]] double worth_a_change(double rounds) const;
  void set_merge(Merge merge);
  void set_choices();
  [[nodiscard]] int most_period() const;
  [[nodiscard]] std::string why() const;

  Merge merge_ = Merge::kLate;
  std::vector<RoundSize> choices_;  // of round ratios, ascending
  std::vector<double> lags_;        // of the choices, with that rule
  std::optional<double> agreement_;
  FallRisk risk_;
  double rounds_ = 0;  // full ones
  double last_change_ = 0;
  double wished_for_ = 0;        // rounds in a row in which a change was worth it
  Seconds time_{};               // of the run, as predicted
  std::deque<Seconds> changes_;  // the last few
  std::optional<Tried> tried_;   // the last search for a schedule
};

}  // namespace longhaul
