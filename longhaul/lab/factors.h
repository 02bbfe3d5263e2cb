// Why one recipe reached the target sooner than another: time = step time × steps, and where the
// time of a step went.
#pragma once

#include <optional>
#include <vector>

#include "longhaul/lab/results.h"
#include "longhaul/lab/summary.h"

namespace longhaul::lab {

// A mean step: of the run's replicas together, or of one of them. Nothing where it is not known.
std::optional<TimeSpent> mean_step(const RunResult& run);
std::optional<TimeSpent> mean_step_of(const RunResult& run, std::size_t replica);

// Share of the time that replicas computed, mean over replicas. Nothing where it is not known.
std::optional<double> computing_share(const RunResult& run);

// Share of the communication that made no replica wait: 1 - waiting ÷ communicating, by the sums
// over replicas. Nothing where it is not known, or where there was no communication.
std::optional<double> hidden_share(const RunResult& run);
// Waiting in a period of the plan at the end, mean over replicas. Nothing where it is not known.
std::optional<Seconds> exposed(const RunResult& run);

// How many times sooner a recipe reached the target than the base, and in how many times fewer
// steps: by the medians over seeds. Their quotient is the factor of the step time. Nothing unless
// both reached the target.
std::optional<double> time_factor(const Summary& of, const Summary& base);
std::optional<double> steps_factor(const Summary& of, const Summary& base);
// The factor of steps over the seeds that both have; nothing with fewer than two.
std::optional<Spread> steps_factor_by_seed(const Summary& of, const Summary& base,
                                           const std::vector<RunResult>& runs);

}  // namespace longhaul::lab
