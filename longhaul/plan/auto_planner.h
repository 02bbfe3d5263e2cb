// The flagship: ratio, delay and merge rule together, by the least predicted time to the target
// T_avg · N, from what a run measures. Holds no clock and no thread: observations in, decisions
// out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/deco.h"
#include "longhaul/plan/iteration_model.h"
#include "longhaul/plan/round_sizes.h"

namespace longhaul {

constexpr int kMostAutoDelay = 16;

struct AutoLimits {
  int most_delay = kMostAutoDelay;
  bool may_look_ahead = true;  // false for optimizers whose steps cannot be foreseen (AdamW)
};

// How alike the replicas' messages are: 0 as if independent, 1 if equal. Free at every merge.
// `squares` are the squared norms of the messages, `mean_square` that of their mean.
double agreement_of(std::span<const double> squares, double mean_square);

class AutoPlanner {
 public:
  AutoPlanner(RoundSizes sizes, const AutoLimits& limits);

  // The best plan for these conditions, as far as the replicas' agreement is known. Pure.
  [[nodiscard]] Decision best(const Conditions& replicas) const;

  // A round has closed; its messages agreed this much.
  void note_agreement(double agreement);

  // A decision to announce, if it is worth a change: better than keeping the current plan by more
  // than a margin, and not soon after the last change unless the current plan has become bad.
  std::optional<Decision> decide(const Conditions& replicas, const Plan& current);

  [[nodiscard]] std::optional<double> agreement() const { return agreement_; }
  [[nodiscard]] const RoundSizes& sizes() const { return sizes_; }

 private:
  [[nodiscard]] IterationModel model_of(Merge merge) const;
  [[nodiscard]] Decision judged(const Conditions& replicas, const Plan& plan) const;
  [[nodiscard]] bool replicas_agree() const;
  [[nodiscard]] std::string why(const Decision& decision) const;

  RoundSizes sizes_;
  AutoLimits limits_;
  std::optional<double> agreement_;
  std::size_t rounds_ = 0;
  std::size_t last_change_ = 0;
};

}  // namespace longhaul
