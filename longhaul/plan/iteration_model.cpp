#include "longhaul/plan/iteration_model.h"

#include <algorithm>
#include <cmath>

namespace longhaul {
namespace {

// Steps to 84 % on fashion-wan over those of synchronous training; docs/planner.md has the runs.
// The optimizer on a late mean diverges at most delays: its figure only says "do not".
constexpr IterationModel kOptimizer{.per_step = 0.5, .power = 1, .drop = 0.005, .drop_power = 1};
constexpr IterationModel kLate{.per_step = 0.03, .power = 1, .drop = 0.0004, .drop_power = 1};
constexpr IterationModel kAhead{.per_step = 0.09, .power = 1, .drop = 0.004, .drop_power = 1};

}  // namespace

double IterationModel::delay_cost(int delay_steps) const {
  return per_step * std::pow(delay_steps, power);
}

double IterationModel::drop_cost(double keep_ratio) const {
  return drop * std::pow(1 / keep_ratio - 1, drop_power);
}

IterationModel IterationModel::corrected(std::optional<double> agreement) const {
  IterationModel model = *this;
  // Four times the cost at -0.02, which is what Dirichlet(0.1) shows.
  if (agreement)
    model.per_step *= std::clamp(1 + (kCalibrationAgreement - *agreement) / 0.03, 1.0, 4.0);
  return model;
}

const IterationModel& calibrated_model(Merge merge) {
  switch (merge) {
    case Merge::kLate:
      return kLate;
    case Merge::kAhead:
      return kAhead;
    case Merge::kOptimizer:
    case Merge::kOwnStep:
      break;
  }
  return kOptimizer;
}

}  // namespace longhaul
