// Overlap-Local-SGD: replicas are pulled towards an anchor, which follows their mean.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longhaul/sync/merge_rule.h"

namespace longhaul {

// The anchor is the shared model. A replica sends how far it is from it, and when a mean has moved
// the anchor it goes a part of the way to it: nothing adds up over rounds, so nothing is held back.
// As published there is a pull at the end of the first period too, back towards the initial model,
// which no mean has moved yet: here there is none.
std::unique_ptr<MergeRule> make_anchor_rule(const EngineOptions& options, std::vector<float> shared,
                                            std::span<float> parameters, Workers& workers);

}  // namespace longhaul
