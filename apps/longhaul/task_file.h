// What a hub's directory is of: the task, beside the journal, for those who read it later.
#pragma once

#include <string>

#include "apps/longhaul/job_options.h"

namespace longhaul::apps {

Status write_task(const std::string& directory, const v1::Task& task);
Result<v1::Task> read_task(const std::string& directory);

}  // namespace longhaul::apps
