// The job of a rank of a collective, from its command line and its environment.
#pragma once

#include <memory>
#include <string>

#include "apps/longhaul/train/train_options.h"
#include "longhaul/base/result.h"
#include "longhaul/job/task.h"
#include "trainer/c10d_group.h"
#include "trainer/launcher.h"

namespace longhaul::apps {

struct RankJob {
  trainer::RankOptions place;
  std::string rendezvous;  // HOST:PORT
  v1::Task task;
  Job job;
};

// The variables of this process.
trainer::Environment environment();

// Refuses a number of ranks that is not that of the scenario's replicas.
Result<RankJob> rank_job(const TrainCommandOptions& arguments,
                         const trainer::Environment& environment);

// Waits until all ranks are there.
Result<std::unique_ptr<trainer::C10dGroup>> meet(const RankJob& rank,
                                                 const trainer::Environment& environment);

}  // namespace longhaul::apps
