// The first half of a step of a replica that computes its gradient here.
#pragma once

#include "longhaul/sync/engine.h"
#include "longhaul/sync/learner.h"

namespace longhaul {

// Computes the gradient of the learner and submits it, a part as soon as its gradient is final.
// Returns the loss. The bits are those of compute_gradient() and Engine::submit().
double compute_and_submit(Learner& learner, Engine& engine);

}  // namespace longhaul
