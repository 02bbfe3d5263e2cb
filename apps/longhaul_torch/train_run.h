// One replica's run from joining the hub to the end, or to Ctrl-C, with its checkpoints.
#pragma once

#include <memory>

#include "apps/longhaul/train_options.h"
#include "longhaul/base/result.h"
#include "longhaul/lab/job.h"
#include "longhaul/sync/learner.h"
#include "proto/longhaul.pb.h"

namespace longhaul::apps {

struct Beginning {
  HubAccess access;
  CheckpointOptions checkpoints;
  v1::Task task;  // of the hub
  lab::Job job;   // what it says, and where the data lies here
  std::unique_ptr<Workload> workload;
};

enum class Ending : std::uint8_t {
  kFinished,
  kStopped,      // by the hub, before the last step
  kInterrupted,  // by Ctrl-C
};
Result<Ending> run_replica(const TrainArguments& arguments, Beginning beginning);

}  // namespace longhaul::apps
