// When a run has reached its target: defined once, for the lab and the rehearsal.
#pragma once

#include <optional>
#include <vector>

#include "longhaul/lab/results.h"
#include "longhaul/lab/scenario.h"

namespace longhaul::lab {

struct TargetReached {
  Seconds time{};
  double step = 0;
};

// The mean of the target's metric over each three evaluations in a row, the first at the third.
std::vector<double> smoothed_metric(const TargetSettings& target,
                                    const std::vector<EvalPoint>& evaluations);

// The first time that the mean of the last three evaluations crosses the target, interpolated
// between it and the mean before; empty while it has not.
std::optional<TargetReached> target_reached(const TargetSettings& target,
                                            const std::vector<EvalPoint>& evaluations);

}  // namespace longhaul::lab
