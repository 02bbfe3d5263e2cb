// The late correction: every replica steps by itself, sends what its steps moved, and swaps its own
// message for the mean when that arrives.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longhaul/sync/merge_rule.h"
#include "longhaul/sync/unmerged.h"

namespace longhaul {

// In the words of OLCO3: x is where the replica is (the parameters), y what it has told. Neither y
// = shared - unmerged nor the residual y - x, which it sends next, stands anywhere: both follow
// from the rest. Rounding errors in x become part of the residual, so nothing is lost by them.
// Where nobody computes, the parameters hold the shared model; an empty `shared` says that they do.
std::unique_ptr<MergeRule> make_late_rule(const EngineOptions& options, std::vector<float> shared,
                                          std::span<float> parameters, Optimizer& optimizer,
                                          Workers& workers, Unmerged unmerged);

// How far a mean of gradients moves the shared model in the end, without an optimizer for it:
// lr / (1 - μ).
float move_of_gradient(const OptimizerOptions& optimizer, double lr);

}  // namespace longhaul
