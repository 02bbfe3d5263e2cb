// The first half of a step of a replica that computes its gradient here.
#pragma once

#include <cstdint>
#include <functional>

#include "longhaul/sync/engine.h"
#include "longhaul/sync/learner.h"

namespace longhaul {

// Computes the gradient of the learner and submits it, a part as soon as its gradient is final.
// Returns the loss. The bits are those of compute_gradient() and Engine::submit().
//
// The step before may still be open. Then `before_use` is called for each part that the forward
// pass is about to read. `end_step` is called once between the two passes, to end that step. If it
// returns false the gradient is useless, and nothing is submitted.
double compute_and_submit(Learner& learner, Engine& engine,
                          const std::function<void(std::uint32_t part)>& before_use = {},
                          const std::function<bool()>& end_step = {});

}  // namespace longhaul
