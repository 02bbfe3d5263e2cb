// DiLoCo and its kin: an outer optimizer steps with the mean of what local steps moved.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longhaul/sync/merge_rule.h"

namespace longhaul {

// A replica goes on from each merge at shared - unmerged - what it has moved since its last
// message. The part that compression held back is not in it: it waits in the residual, and may
// decay there. Until the merge the replica stays where its steps have led it.
std::unique_ptr<MergeRule> make_outer_rule(const EngineOptions& options, std::vector<float> shared,
                                           std::span<float> parameters, Workers& workers);

}  // namespace longhaul
