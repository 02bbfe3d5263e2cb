// The task of a hub's directory, written beside the journal for later readers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/job/task.h"

namespace longhaul::apps {

Status write_task(const std::string& directory, const v1::Task& task);
Result<v1::Task> read_task(const std::string& directory);

// The task of a hub on this directory. A run that is there goes on. Then the scenario of `request`
// may be empty, and settings that are asked for again must be as they were. `seed` counts in place
// of the request's; none: as it was, or 1.
Result<v1::Task> task_in(const std::string& directory, TaskOptions request,
                         std::optional<std::uint64_t> seed);

}  // namespace longhaul::apps
