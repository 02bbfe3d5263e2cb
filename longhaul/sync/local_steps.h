// What a recipe says of replicas that take steps of their own, beside the plan.
#pragma once

#include <optional>

namespace longhaul {

struct LocalSteps {
  // Delay in periods: the row's delay_steps follow the period, unless they are set themselves. 0:
  // in steps.
  int delay_periods = 0;
  // False: a replica goes on from the shared model, without its own unmerged messages. Long delays
  // then diverge, which is what the late correction is for.
  bool compensates_delay = true;
  // Where a replica is after a merge: mixing · where it was + (1 - mixing) · the shared model.
  // Nothing: where the late correction says; with an anchor, there.
  std::optional<float> mixing;
  float outer_momentum = 0.0F;  // of the shared model
};

}  // namespace longhaul
