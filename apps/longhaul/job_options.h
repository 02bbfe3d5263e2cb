// A scenario, one recipe and one seed, as `hub` and `rehearse` take them from the command line, and
// as the hub passes them on to its replicas.
#pragma once

#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/lab/job.h"
#include "proto/longhaul.pb.h"

namespace longhaul::apps {

// Reads the scenario and checks that everything fits together. Settings are "table.key=value".
struct TaskRequest {
  std::string scenario;  // name or path
  std::vector<std::string> settings;
  std::string recipe;  // empty: auto
  std::uint64_t seed = 1;
};
Result<v1::Task> task_of(const TaskRequest& request);

// The scenario with the request's settings and seed and these recipes, as the text of a file.
Result<std::string> config_text(const TaskRequest& request,
                                const std::vector<std::string>& recipes);

// What a task says. Paths of the scenario mean nothing here: only its own `data.path` is used.
Result<lab::Job> job_of(const v1::Task& task);

}  // namespace longhaul::apps
