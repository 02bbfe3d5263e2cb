// A task: a scenario, one recipe and one seed, as a hub passes them on to its replicas.
#pragma once

#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/job.h"
#include "proto/longhaul.pb.h"

namespace longhaul {

struct TaskOptions {
  std::string scenario;               // name or path
  std::vector<std::string> settings;  // "table.key=value"
  std::string recipe;                 // empty: auto
  std::uint64_t seed = 1;
};
// Reads the scenario with its settings.
Result<Scenario> scenario_of(const TaskOptions& request, const Catalogue& catalogue);
// Checks also that the recipe fits.
Result<v1::Task> task_of(const TaskOptions& request, const Catalogue& catalogue);

// The scenario with the request's settings and seed and these recipes, as the text of a file.
Result<std::string> config_text(const TaskOptions& request, const std::vector<std::string>& recipes,
                                const Catalogue& catalogue);

// The job that a task describes. Paths of its scenario mean nothing on another machine.
Result<Job> job_of(const v1::Task& task, const Catalogue& catalogue);

}  // namespace longhaul
