// Which layers to send in which step of a period, so that the least of their time is exposed. Pure
// searches: the same input gives the same sets on every machine.
#pragma once

#include <cstddef>

#include "longhaul/plan/layer_timeline.h"

namespace longhaul {

// With so few layers best_sets() is exact.
inline constexpr std::size_t kExactLayers = 10;

// Cuts the layers into consecutive sets, one for each step of a period, some of them empty. Exact:
// the dynamic programme best[h][e] = min over a of best[h-1][a] + exposed(a..e), in O(H·L²).
LayerSteps contiguous_sets(const LayerCosts& costs, std::size_t period_steps);

// Any sets, each layer in one of them. Never worse than contiguous_sets(). More than kExactLayers
// layers are improved by moves and swaps between steps, for a bounded number of trials.
LayerSteps best_sets(const LayerCosts& costs, std::size_t period_steps);

// Adds rounds of layers where that exposes nothing. A layer that fits into the idle time of the
// lines is averaged once more. `most_rounds`: of a period.
LayerSteps filled(const LayerCosts& costs, LayerSteps steps, std::size_t most_rounds);

// The sum of all steps.
Seconds exposed_of(const LayerCosts& costs, const LayerSteps& steps);

}  // namespace longhaul
