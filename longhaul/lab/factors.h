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

// How many times sooner a recipe was than the base. step_time · steps = time, exactly.
struct Factors {
  double time = 1;
  double step_time = 1;
  double steps = 1;
  // Least and most of `steps` over the seeds that both have; nothing with fewer than two.
  std::optional<Spread> steps_by_seed;
};

// From the medians over seeds. Nothing unless both reached the target.
std::optional<Factors> factors(const Summary& of, const Summary& base,
                               const std::vector<RunResult>& runs);

}  // namespace longhaul::lab
