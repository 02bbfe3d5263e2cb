#include "apps/longhaul_torch/train_command.h"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/installed.h"
#include "apps/longhaul_torch/await_hub.h"
#include "apps/longhaul_torch/collective_run.h"
#include "apps/longhaul_torch/train_run.h"
#include "longhaul/base/file.h"
#include "longhaul/base/memory.h"
#include "longhaul/job/task.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/telemetry/event_log.h"
#include "trainer/workload.h"

namespace longhaul::apps {
namespace {

// Scores copies of the shared model: "STEP TIME FILE" on each line of standard input. STEP 0 takes
// all held-out data.
int evaluate(const Job& job, Workload& workload) {
  std::size_t step = 0;
  double time_s = 0;
  std::string file;
  auto layers = nlohmann::ordered_json::array();
  for (const Layer& layer : workload.layers())
    layers.push_back({{"name", layer.name},
                      {"offset", layer.offset},
                      {"count", layer.count},
                      {"shape", layer.shape}});
  print_event("ready", {{"parameters", workload.initial_parameters().size()}, {"layers", layers}});
  while (std::cin >> step >> time_s >> file) {
    const Result<ByteBuffer> bytes = read_file(file, workload.initial_parameters().size_bytes());
    if (!bytes.ok() || bytes->size() != workload.initial_parameters().size_bytes()) continue;
    std::vector<float> parameters(workload.initial_parameters().size());
    std::ranges::copy(*bytes, std::as_writable_bytes(std::span(parameters)).begin());
    const std::size_t samples =
        step == 0 ? static_cast<std::size_t>(-1) : job.scenario.eval.samples;
    const Evaluation score = workload.evaluate(parameters, samples);
    print_event(
        "evaluation",
        {{"step", step}, {"time_s", time_s}, {"loss", score.loss}, {"accuracy", score.accuracy}});
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
  return kExitDone;
}

}  // namespace

int run_train(const TrainCommandOptions& arguments) {
  if (!arguments.collective.empty()) return run_collective(arguments);
  const Result<HubAccess> access = hub_access(arguments.invite, arguments.hub, arguments.name);
  if (!access.ok()) return complain("train", access.error());
  const Result<CheckpointOptions> checkpoints = checkpoint_options(arguments, access->name);
  if (!checkpoints.ok()) return complain("train", checkpoints.error());
  if (const Status saves = check_save(arguments); !saves.ok())
    return complain("train", saves.error());
  const Result<std::optional<Seconds>> wait = longest_wait(arguments);
  if (!wait.ok()) return complain("train", wait.error());
  notice_interrupts();
  keep_freed_memory();
  const std::unique_ptr<Connector> connector = make_grpc_connector(access->address, access->tls);
  const Result<v1::Task> task =
      await_task(*connector, *access, *wait, Log(log_level(arguments.log)).named("train"));
  if (is_interrupted()) return kExitInterrupted;
  if (!task.ok()) return complain("train", task.error());
  Result<Job> job = job_of(*task, catalogue());
  if (!job.ok()) return complain("train", Error(job.error()).within("what the hub sent"));
  if (!arguments.data.empty()) job->scenario.data.path = arguments.data;
  Result<std::optional<State>> checkpoint = find_checkpoint(arguments, *checkpoints);
  if (!checkpoint.ok()) return complain("train", checkpoint.error());
  const std::size_t threads = threads_for(arguments, access->address, *checkpoint);
  trainer::WorkloadOptions work = trainer::workload_options(job->scenario, job->seed);
  work.gradient_threads = threads;
  Result<std::unique_ptr<Workload>> workload = trainer::make_workload(work);
  if (!workload.ok()) return complain("train", workload.error());
  if (arguments.evaluate) return evaluate(*job, **workload);
  const Result<Ending> ending = run_replica(arguments, *access, *task, **workload,
                                            {.client = {},
                                             .job = std::move(job).value(),
                                             .checkpoints = *checkpoints,
                                             .checkpoint = std::move(*checkpoint),
                                             .threads = threads});
  if (!ending.ok()) return complain("train", ending.error());
  if (*ending == Ending::kStopped) return kExitStopped;
  return *ending == Ending::kInterrupted ? kExitInterrupted : kExitDone;
}

}  // namespace longhaul::apps
