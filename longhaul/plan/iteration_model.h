// How many more steps a plan needs than synchronous training: fitted to calibration runs (the
// figures and the runs are in docs/planner.md) and corrected by what a run shows.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

#include "longhaul/round/plan.h"

namespace longhaul {

// N = 1 + per_step·τ + drift·(H - 1) + drop·((H/δ)^power - 1)
struct IterationModel {
  double per_step = 0;
  double drop = 0;
  double power = 1;
  double drift = 0;

  [[nodiscard]] double delay_cost(int delay_steps) const { return per_step * delay_steps; }
  [[nodiscard]] double drift_cost(int period_steps) const { return drift * (period_steps - 1); }
  // An element waits for H/δ steps, about. `lag` is its power: lag_of(δ)·lag_of(1/H).
  [[nodiscard]] double lag_of(double keep_ratio) const { return std::pow(keep_ratio, -power); }
  [[nodiscard]] double drop_cost(double lag) const { return drop * (lag - 1); }
  [[nodiscard]] double steps(const Plan& plan) const {
    return 1 + delay_cost(plan.delay_steps) + drift_cost(plan.period_steps) +
           drop_cost(lag_of(plan.keep_ratio / plan.period_steps));
  }
  // Where replicas agree less than in the calibration runs, delay and steps of one's own cost more;
  // within bounds.
  [[nodiscard]] IterationModel corrected(std::optional<double> agreement) const;
  // For a run of that many steps: what compression holds back is late by a number of steps, which
  // is a larger share of a short run. 0: of unknown length.
  [[nodiscard]] IterationModel over(std::size_t steps) const;
};

// Steps of the calibration runs, about.
constexpr double kCalibrationSteps = 300;

// Mean agreement of the calibration runs, whose data was equal.
constexpr double kCalibrationAgreement = 0.07;
// Below the first, replicas work against each other and need one momentum; above the second, each
// may run an optimizer of its own again.
constexpr double kDisagreement = -0.05;
constexpr double kAgreement = 0.0;

const IterationModel& calibrated_model(Merge merge);
// The model of the plan's merge rule. A plan with a schedule has dense parts, and a row of its own.
const IterationModel& calibrated_model(const Plan& plan);
// For the other rules nobody has run what would tell.
bool is_calibrated(Merge merge);

}  // namespace longhaul
