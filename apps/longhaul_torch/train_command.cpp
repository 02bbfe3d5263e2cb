#include "apps/longhaul_torch/train_command.h"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/longhaul/command.h"
#include "apps/longhaul/complain.h"
#include "apps/longhaul/interrupt.h"
#include "apps/longhaul/job_options.h"
#include "apps/longhaul_torch/job_workload.h"
#include "apps/longhaul_torch/train_run.h"
#include "longhaul/base/file.h"
#include "longhaul/base/memory.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/sync/pacer.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kAskTimeout{30.0};
constexpr Seconds kAwaitHub{3.0};  // that is not there yet
constexpr Seconds kAskAgain{0.3};

// A hub that starts at the same time may take a moment.
Result<v1::Task> ask(Connector& connector, const HubAccess& access) {
  const SystemClock clock;
  const Deadline asked_enough = time_after(clock.now(), kAwaitHub);
  for (Pacer pacer;;) {
    Result<v1::Task> task = ask_for_task(connector, access.name, access.token,
                                         deadline_after(kAskTimeout), is_interrupted);
    const bool is_away = !task.ok() && task.error().code == ErrorCode::kClosed;
    if (!is_away || is_interrupted() || clock.now() > asked_enough) return task;
    pacer.wait_until(time_after(clock.now(), kAskAgain));
  }
}

// Scores copies of the shared model: "STEP TIME FILE" on each line of standard input. STEP 0 takes
// all held-out data.
int evaluate(const lab::Job& job, Workload& workload) {
  std::size_t step = 0;
  double time_s = 0;
  std::string file;
  auto layers = nlohmann::ordered_json::array();
  for (const Layer& layer : workload.layers())
    layers.push_back({{"offset", layer.offset}, {"count", layer.count}, {"shape", layer.shape}});
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

int run_train(const TrainArguments& arguments) {
  const Result<HubAccess> access = hub_access(arguments);
  if (!access.ok()) return complain("train", access.error());
  const Result<CheckpointOptions> checkpoints = checkpoint_options(arguments, access->name);
  if (!checkpoints.ok()) return complain("train", checkpoints.error());
  if (const Status saves = check_save(arguments); !saves.ok())
    return complain("train", saves.error());
  notice_interrupts();
  keep_freed_memory();
  const std::unique_ptr<Connector> connector = make_grpc_connector(access->address, access->tls);
  const Result<v1::Task> task = ask(*connector, *access);
  if (is_interrupted()) return kExitInterrupted;
  if (!task.ok()) return complain("train", task.error());
  Result<lab::Job> job = job_of(*task);
  if (!job.ok()) return complain("train", Error(job.error()).within("what the hub sent"));
  if (!arguments.data.empty()) job->scenario.data.path = arguments.data;
  Result<std::unique_ptr<Workload>> workload = workload_of(job->scenario, job->seed, 1);
  if (!workload.ok()) return complain("train", workload.error());
  if (arguments.evaluate) return evaluate(*job, **workload);
  const Status trained = run_replica(arguments, {.access = *access,
                                                 .checkpoints = *checkpoints,
                                                 .task = *task,
                                                 .job = std::move(job).value(),
                                                 .workload = std::move(workload).value()});
  const bool is_cut_short =
      is_interrupted() && (trained.ok() || trained.error().code == ErrorCode::kDeadline);
  if (is_cut_short) return kExitInterrupted;
  return trained.ok() ? kExitDone : complain("train", trained.error());
}

}  // namespace longhaul::apps
