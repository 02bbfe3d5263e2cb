// The task of a hub's directory, written beside the journal for later readers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/job/task.h"

namespace longhaul::apps {

Status write_task(const std::string& directory, const v1::Task& task);
Result<v1::Task> read_task(const std::string& directory);

// What a hub on this directory is to do. A run that is there goes on: it needs no scenario, and
// what is asked for again must be as it was.
struct AskedTask {
  TaskOptions request;                // its scenario may be empty
  std::optional<std::uint64_t> seed;  // none: as it was, or 1
};
Result<v1::Task> task_in(const std::string& directory, const AskedTask& asked);

}  // namespace longhaul::apps
