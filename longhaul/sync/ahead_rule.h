// The look-ahead: one optimizer on the means, the same everywhere, and each gradient is computed
// where the shared model will be once everything in flight has landed, as far as this replica can
// tell from its own messages.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longhaul/sync/merge_rule.h"
#include "longhaul/sync/unmerged.h"

namespace longhaul {

std::unique_ptr<MergeRule> make_ahead_rule(const EngineOptions& options, std::vector<float> shared,
                                           std::span<float> parameters, Optimizer& optimizer,
                                           Workers& workers, Unmerged unmerged,
                                           std::vector<float> residual);

}  // namespace longhaul
