// The model and the data of a scenario, as libtorch trains them.
#pragma once

#include <cstdint>
#include <memory>

#include "longhaul/base/result.h"
#include "longhaul/lab/scenario.h"
#include "longhaul/sync/learner.h"

namespace longhaul::apps {

// An error says what data is missing and where it was looked for.
Result<std::unique_ptr<Workload>> workload_of(const lab::Scenario& scenario, std::uint64_t seed,
                                              std::size_t threads);

}  // namespace longhaul::apps
