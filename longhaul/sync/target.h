// When a run has reached its target: defined once, for the lab, the rehearsal and the hub.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/units.h"

namespace longhaul {

// The figure that a target is about.
enum class Metric : std::uint8_t { kAccuracy, kLoss };
std::string name_of(Metric metric);  // as scenarios and events write it

// The metric and the value at which a run has reached its target.
struct TargetOptions {
  Metric metric = Metric::kAccuracy;
  double value = 0;
};

// A score at a step.
struct EvalPoint {
  std::size_t step = 0;  // steps done
  Seconds time{};        // since the start; in the lab, virtual
  double loss = 0;
  double accuracy = 0;
};

// Step and time at which the target was reached.
struct TargetReached {
  Seconds time{};
  double step = 0;
};

// The mean of the target's metric over each three evaluations in a row, the first at the third.
std::vector<double> smoothed_metric(const TargetOptions& target,
                                    const std::vector<EvalPoint>& evaluations);

// The first time that the mean of the last three evaluations crosses the target, interpolated
// between it and the mean before; empty while it has not.
std::optional<TargetReached> target_reached(const TargetOptions& target,
                                            const std::vector<EvalPoint>& evaluations);

}  // namespace longhaul
