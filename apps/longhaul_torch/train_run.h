// One replica's run from joining the hub to the end, or to Ctrl-C, with its checkpoints.
#pragma once

#include <memory>
#include <optional>

#include "apps/longhaul/train/train_options.h"
#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/job/job.h"
#include "longhaul/session/train_session.h"
#include "longhaul/sync/learner.h"
#include "proto/longhaul.pb.h"

namespace longhaul::apps {

// The checkpoint that --resume continues; nothing if there is none.
Result<std::optional<State>> find_checkpoint(const TrainCommandOptions& arguments,
                                             const CheckpointOptions& options);

// The number of threads for gradients and codecs. --threads decides; else the checkpoint, because
// repeated steps have the same bits only with the same number. Otherwise all cores, or one if the
// hub is on this machine: other replicas then share it.
std::size_t threads_for(const TrainCommandOptions& arguments, const std::string& hub,
                        const std::optional<State>& checkpoint);

// Writes the shared model to the file that --save names, if it does.
Status save_model(const TrainCommandOptions& arguments, const Job& job, const Workload& workload,
                  const Engine& engine);

// `task` is that of the hub. `options` has the job that it describes, with the place of the data
// here, the checkpoints and the threads.
Result<Ending> run_replica(const TrainCommandOptions& arguments, const HubAccess& access,
                           const v1::Task& task, Workload& workload, SessionOptions options);

}  // namespace longhaul::apps
