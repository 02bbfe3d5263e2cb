#include "apps/longhaul_torch/train_command.h"

#include <filesystem>
#include <iostream>
#include <thread>
#include <utility>

#include "apps/longhaul/command.h"
#include "apps/longhaul/interrupt.h"
#include "apps/longhaul/job_options.h"
#include "apps/longhaul/json_lines.h"
#include "apps/longhaul_torch/job_workload.h"
#include "longhaul/base/file.h"
#include "longhaul/base/log.h"
#include "longhaul/base/memory.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/sync/replica.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kPatience{0.2};  // of one wait, between looks at Ctrl-C
constexpr Seconds kAskTimeout{30.0};

int complain(const Error& error) {
  std::cerr << "longhaul train: " << error.message << '\n';
  return error.code == ErrorCode::kInvalidArgument ? kExitWrongUse : kExitFailed;
}

std::uint64_t digest_of_layers(const LayerTable& layers) {
  std::string text;
  for (const Layer& layer : layers) text += layer.name + ':' + std::to_string(layer.count) + '\n';
  return digest_of(std::as_bytes(std::span(text)));
}

ByteBuffer bytes_of(std::span<const float> values) {
  const std::span bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

class Trainer {
 public:
  Trainer(const TrainArguments& arguments, HubAccess access, lab::Job job,
          std::unique_ptr<Workload> workload)
      : arguments_(arguments),
        access_(std::move(access)),
        job_(std::move(job)),
        workload_(std::move(workload)),
        connector_(make_grpc_connector(access_.address, access_.tls)) {}

  Status run() {
    client_ = std::make_unique<HubClient>(client_setup(), *connector_, clock_);
    const Result<Place> place =
        patiently([&](Deadline deadline) { return client_->place(deadline); });
    if (!place.ok()) return place.error();
    slot_ = place->slot;
    if (slot_ >= job_.scenario.replicas.size())
      return Error{ErrorCode::kMismatch, "the hub gave a slot that the scenario does not have"};
    const Result<EngineSetup> engine = lab::engine_setup(job_, workload_->layers());
    if (!engine.ok()) return engine.error();
    learner_ = workload_->make_learner(slot_);
    replica_ = std::make_unique<Replica>(
        Replica::Setup{.engine = *engine, .step_time = job_.scenario.replicas[slot_].step_time},
        *learner_, *client_, workers_, clock_);
    const Status started = patiently([&](Deadline deadline) { return replica_->start(deadline); });
    if (!started.ok()) return started;
    start_ = clock_.now();
    event("started", {{"slot", slot_}});
    Status trained = train();
    if (!trained.ok()) return trained;
    return finish();
  }

 private:
  [[nodiscard]] ClientSetup client_setup() const {
    const std::span initial = workload_->initial_parameters();
    return {.name = access_.name,
            .token = access_.token,
            .slot = arguments_.slot,
            .elements = initial.size(),
            .layers_digest = digest_of_layers(workload_->layers()),
            .initial = std::make_shared<const ByteBuffer>(bytes_of(initial)),
            .rate = arguments_.rate,
            .compute = job_.scenario.train.step_time};
  }

  // Waits as long as it takes, with a look at Ctrl-C now and then.
  template <typename Try>
  auto patiently(Try what) -> decltype(what(Deadline())) {
    for (;;) {
      auto result = what(time_after(clock_.now(), kPatience));
      if (result.ok() || result.error().code != ErrorCode::kDeadline || is_interrupted())
        return result;
    }
  }

  Status train() {
    while (!is_interrupted()) {
      const Result<StepFacts> facts =
          patiently([&](Deadline deadline) { return replica_->step(deadline); });
      if (!facts.ok()) {
        if (is_interrupted() && facts.error().code == ErrorCode::kDeadline) return Done{};
        return facts.error();
      }
      if (facts->stance == Stance::kFinish) return Done{};
      if (facts->was_late) ++late_steps_;
      tell(*facts);
    }
    return Done{};
  }

  void tell(const StepFacts& facts) {
    const std::size_t done = replica_->engine().steps_done();
    const double time_s = Seconds(clock_.now() - start_).count();
    event("step", {{"step", done},
                   {"time_s", time_s},
                   {"loss", facts.loss},
                   {"computing_s", facts.computing.count()},
                   {"waiting_s", facts.waiting.count()},
                   {"took_part", facts.stance == Stance::kTakePart}});
    if (arguments_.stamps.empty() || done % job_.scenario.eval.every != 0) return;
    const std::filesystem::path file =
        std::filesystem::path(arguments_.stamps) / (std::to_string(done) + ".f32");
    const Status written = write_file_atomically(file, bytes_of(replica_->engine().shared()));
    if (written.ok()) event("stamp", {{"step", done}, {"time_s", time_s}, {"file", file.string()}});
  }

  Status finish() {
    if (is_interrupted()) {
      client_->leave();
      return Done{};
    }
    const Status drained = patiently([&](Deadline deadline) { return replica_->finish(deadline); });
    if (!drained.ok()) return drained;
    const Engine& engine = replica_->engine();
    event("finished", {{"steps", engine.steps_done()},
                       {"digest", digest_text(engine.shared())},
                       {"late_steps", late_steps_},
                       {"reconnections", client_->reconnections()},
                       {"non_finite_steps", engine.non_finite_steps()}});
    if (!arguments_.stamps.empty()) {
      const std::filesystem::path file = std::filesystem::path(arguments_.stamps) / "final.f32";
      const Status written = write_file_atomically(file, bytes_of(engine.shared()));
      if (!written.ok()) return written;
      event("final", {{"file", file.string()}});
    }
    return arguments_.save.empty() ? Status(Done{}) : save(engine);
  }

  Status save(const Engine& engine) {
    State state;
    for (const Layer& layer : workload_->layers()) {
      const std::span values = engine.shared().subspan(layer.offset, layer.count);
      state.tensors[layer.name].assign(values.begin(), values.end());
    }
    return write_file_atomically(arguments_.save, to_bytes(state));
  }

  void event(const std::string& name, const nlohmann::ordered_json& fields) const {
    if (arguments_.json) {
      print_event(name, fields);
    } else if (name != "step" && name != "stamp") {
      log_.info(name + ' ' + fields.dump());
    }
  }

  const TrainArguments& arguments_;
  HubAccess access_;
  lab::Job job_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Connector> connector_;
  SystemClock clock_;
  Workers workers_{1};
  Log log_ = Log().named("train");
  std::size_t slot_ = 0;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<HubClient> client_;
  std::unique_ptr<Replica> replica_;
  TimePoint start_;
  std::size_t late_steps_ = 0;
};

// Scores copies of the shared model: "STEP TIME FILE" on each line of standard input. STEP 0 takes
// all held-out data.
int evaluate(const lab::Job& job, Workload& workload) {
  std::size_t step = 0;
  double time_s = 0;
  std::string file;
  print_event("ready", {{"parameters", workload.initial_parameters().size()}});
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
  if (!access.ok()) return complain(access.error());
  notice_interrupts();
  keep_freed_memory();
  const std::unique_ptr<Connector> connector = make_grpc_connector(access->address, access->tls);
  const Result<v1::Task> task =
      ask_for_task(*connector, access->name, access->token, deadline_after(kAskTimeout));
  if (!task.ok()) return complain(task.error());
  Result<lab::Job> job = job_of(*task);
  if (!job.ok()) return complain(Error(job.error()).within("what the hub sent"));
  if (!arguments.data.empty()) job->scenario.data.path = arguments.data;
  Result<std::unique_ptr<Workload>> workload = workload_of(job->scenario, job->seed, 1);
  if (!workload.ok()) return complain(workload.error());
  if (arguments.evaluate) return evaluate(*job, **workload);
  Trainer trainer(arguments, *access, std::move(job).value(), std::move(workload).value());
  const Status trained = trainer.run();
  if (!trained.ok() && !is_interrupted()) return complain(trained.error());
  return is_interrupted() ? kExitInterrupted : kExitDone;
}

}  // namespace longhaul::apps
