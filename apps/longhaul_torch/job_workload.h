// The model and the data of a scenario, as libtorch trains them.
#pragma once

#include <cstdint>
#include <memory>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/sync/learner.h"

namespace longhaul::apps {

struct ThreadCounts {
  std::size_t evaluation = 1;
  std::size_t gradient = 1;  // of one gradient, whose bits depend on it
};

// An error says what data is missing and where it was looked for.
Result<std::unique_ptr<Workload>> workload_of(const Scenario& scenario, std::uint64_t seed,
                                              const ThreadCounts& threads);

}  // namespace longhaul::apps
