// The three knobs that a recipe sets and a planner may move.
#pragma once

namespace longhaul {

struct Plan {
  double keep_ratio = 1.0;  // δ: share of the elements that is sent
  int delay_steps =
      0;  // τ: a mean is merged this many steps after the step its updates were born in
  int period_steps = 1;  // H: steps between two updates of the same part of the model

  bool operator==(const Plan&) const = default;
};

}  // namespace longhaul
