// Where ranks that resume go on: the newest step of which all of them have a checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul::trainer {

// `steps` holds the steps of each rank's checkpoints, at most two of them. 0: the beginning, as
// some rank had written none yet. An error: checkpoints of this run are missing.
Result<std::uint64_t> newest_common_step(const std::vector<std::vector<std::uint64_t>>& steps);

}  // namespace longhaul::trainer
