// Settings of a recipe for replicas that take steps of their own, beside the plan.
#pragma once

#include <cstddef>
#include <optional>

#include "longhaul/sync/optimizer.h"

namespace longhaul {

struct LocalSteps {
  // Parts of the model, each with a round of its own in every period, spread over it.
  int fragments = 1;
  // Delay in periods: the row's delay_steps follow the period, unless they are set themselves. 0:
  // in steps.
  int delay_periods = 0;
  // False, in tests only: a replica goes on from the shared model, without its own unmerged
  // messages. Long delays then diverge, which is what the late correction is for.
  bool compensates_delay = true;
  // After a merge: position = mixing · position + (1 - mixing) · announced, where announced is the
  // part of the position that the others know. It is the shared model if the delay is shorter than
  // the period. Nothing: where the late correction says; with an anchor, there.
  std::optional<float> mixing;
  // How the shared model moves with a mean, where the rule is `outer`; the momentum with `anchor`
  // too.
  OptimizerKind outer = OptimizerKind::kSgd;
  float outer_lr = 1.0F;
  float (*outer_lr_by_replicas)(std::size_t replicas) = nullptr;  // in its place, unless it is set
  float outer_momentum = 0.0F;
};

}  // namespace longhaul
