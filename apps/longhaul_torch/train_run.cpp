#include "apps/longhaul_torch/train_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/longhaul/command/model_file.h"
#include "apps/longhaul_torch/train_identity.h"
#include "apps/longhaul_torch/train_news.h"
#include "longhaul/access/names.h"
#include "longhaul/base/file.h"
#include "longhaul/codec/digest.h"
#include "longhaul/session/train_session.h"
#include "longhaul/sync/checkpoint.h"

namespace longhaul::apps {
namespace {

constexpr const char* kThreads = "threads";  // in a checkpoint
constexpr std::uint64_t kMostThreads = 256;

// That gradients before this checkpoint were computed with; 1, if it does not tell.
std::size_t threads_in(const State& checkpoint) {
  const auto threads = checkpoint.value<std::uint64_t>(kThreads);
  return threads.ok() && *threads >= 1 && *threads <= kMostThreads ? *threads : 1;
}

ByteBuffer bytes_of(std::span<const float> values) {
  const std::span bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

// Prints the news of a session, and writes the copies of the model that the options ask for.
class TrainRun final : private SessionObserver {
 public:
  TrainRun(const TrainCommandOptions& arguments, HubAccess access, const v1::Task& task,
           Workload& workload, SessionOptions options)
      : arguments_(arguments),
        access_(std::move(access)),
        workload_(workload),
        options_(std::move(options)),
        identity_(identity_of(task, access_.name, workload_.layers())),
        connector_(make_grpc_connector(access_.address, access_.tls)),
        news_(arguments.json, log_level(arguments.log), job().scenario.train.steps, clock_) {}

  Result<Ending> run() {
    LONGHAUL_TRY(check_checkpoint());
    is_resumed_ = options_.checkpoint.has_value();
    SessionObserver& observer = *this;
    session_ =
        std::make_unique<TrainSession>(session_options(), workload_, *connector_, clock_, observer);
    Result<Ending> ending = session_->run();
    Status told = session_->is_merged() ? tell_end() : Done{};
    session_->leave();
    if (!ending.ok()) return ending;
    if (!told.ok()) return told.error();
    if (*ending == Ending::kInterrupted) news_.interrupted(rest());
    if (*ending == Ending::kStopped) news_.stopped(rest());
    return ending;
  }

 private:
  [[nodiscard]] const Job& job() const { return options_.job; }

  // Does the checkpoint belong to this run?
  Status check_checkpoint() {
    if (options_.checkpoints.file.empty() || !arguments_.resume) return Done{};
    if (!options_.checkpoint) {
      news_.note("no checkpoint in " + options_.checkpoints.file.string() + " yet: starts without");
      return Done{};
    }
    Status fits = check_identity(identity_, *options_.checkpoint);
    if (!fits.ok()) {
      Error error = std::move(fits).error().within(options_.checkpoints.file.string());
      error.message += "; move it away, or name another place with --checkpoint";
      return error;
    }
    const std::size_t saved = threads_in(*options_.checkpoint);
    if (saved != options_.threads)
      news_.warn("goes on with --threads " + std::to_string(options_.threads) +
                 " from a run with " + std::to_string(saved) +
                 ": steps that it does again may differ in rounding and count twice in part");
    return Done{};
  }

  [[nodiscard]] SessionOptions session_options() {
    std::optional<State> checkpoint = std::exchange(options_.checkpoint, std::nullopt);
    const std::span initial = workload_.initial_parameters();
    SessionOptions options = options_;
    options.client = {.name = access_.name,
                      .token = access_.token,
                      .slot = arguments_.slot,
                      .elements = initial.size(),
                      .layers = workload_.layers(),
                      .initial = std::make_shared<const ByteBuffer>(bytes_of(initial)),
                      .rate = arguments_.rate,
                      .compute = job().scenario.train.step_time};
    options.checkpoint = std::move(checkpoint);
    options.marks.values[kThreads] = options_.threads;
    save_layers(workload_.layers(), options.marks);
    save_identity(identity_, options.marks);
    options.is_paced = arguments_.is_paced;
    options.book = arguments_.book;
    return options;
  }

  void on_start(std::size_t slot, std::uint64_t step) override {
    news_.started(slot, step, options_.threads, is_resumed_);
  }
  void on_step(const StepFacts& facts, const Engine& engine) override {
    news_.step(facts);
    // The steps that the shared model has: one less where the last one ends in a forward pass.
    const std::size_t done = engine.steps_done();
    const bool is_due = done > 0 && done % job().scenario.eval.every == 0;
    if (arguments_.stamps.empty() || !is_due) return;
    const double time_s = news_.time_s();
    const std::filesystem::path file =
        std::filesystem::path(arguments_.stamps) / (std::to_string(done) + ".f32");
    const Status written = write_file_atomically(file, bytes_of(engine.shared()));
    if (written.ok())
      news_.event("stamp", {{"step", done}, {"time_s", time_s}, {"file", file.string()}});
  }
  void on_replaced(const Replaced& replaced) override { news_.replaced(replaced); }
  void on_score(const Score& score) override { news_.evaluation(score); }
  void on_link(const LinkNews& news) override { news_.link(news); }
  void on_checkpoint(const Result<std::uint64_t>& step) override {
    news_.checkpoint(step, options_.checkpoints.file);
  }

  // Tells of the end of the run, or of its stop, and writes the model of then.
  Status tell_end() {
    const Engine& engine = session_->engine();
    const HubClient& client = session_->client();
    const bool is_stopped = client.finish_cause() == FinishCause::kStopped;
    if (!is_stopped || arguments_.json)  // else there is another line
      news_.finished({.steps = engine.steps_done(),
                      .next = what_next(),
                      .cause = client.finish_cause(),
                      .digest = digest_text(engine.shared()),
                      .late_steps = session_->late_steps(),
                      .reconnections = client.reconnections(),
                      .differing_updates = client.differing(),
                      .non_finite_steps = engine.non_finite_steps()});
    if (!arguments_.stamps.empty()) {
      const std::filesystem::path file = std::filesystem::path(arguments_.stamps) / "final.f32";
      LONGHAUL_TRY(write_file_atomically(file, bytes_of(engine.shared())));
      news_.event("final", {{"file", file.string()}});
    }
    return save_model(arguments_, job(), workload_, engine);
  }

  [[nodiscard]] std::string what_next() const {
    if (arguments_.save.empty()) return "on the hub: longhaul export DIR --out model.safetensors";
    return "longhaul evaluate " + arguments_.save + ' ' + job().scenario.name;
  }

  [[nodiscard]] TrainNews::Ending rest() const {
    return {
        .steps = session_->step(),
        .checkpoint = session_->is_started() ? options_.checkpoints.file.string() : std::string(),
        .next = command_to_resume(arguments_)};
  }

  const TrainCommandOptions& arguments_;
  HubAccess access_;
  Workload& workload_;
  SessionOptions options_;  // without a checkpoint once the session has it
  RunIdentity identity_;
  std::unique_ptr<Connector> connector_;
  Clock clock_;
  TrainNews news_;
  bool is_resumed_ = false;
  std::unique_ptr<TrainSession> session_;  // last: ends before what it uses
};

}  // namespace

Result<std::optional<State>> find_checkpoint(const TrainCommandOptions& arguments,
                                             const CheckpointOptions& options) {
  if (!arguments.resume || options.file.empty()) return std::optional<State>();
  Result<State> state = read_checkpoint(options.file);
  if (state.ok()) return std::optional(std::move(state).value());
  if (state.error().code == ErrorCode::kNotFound) return std::optional<State>();
  return state.error();
}

std::size_t threads_for(const TrainCommandOptions& arguments, const std::string& hub,
                        const std::optional<State>& checkpoint) {
  if (arguments.threads > 0) return arguments.threads;
  if (checkpoint) return threads_in(*checkpoint);
  const Result<access::Address> address = access::parse_address(hub);
  return address.ok() && access::is_loopback(*address) ? 1 : all_cores();
}

Status save_model(const TrainCommandOptions& arguments, const Job& job, const Workload& workload,
                  const Engine& engine) {
  if (arguments.save.empty()) return Done{};
  const std::span shared = engine.shared();
  return write_output(arguments.save,
                      model_bytes({.values = {shared.begin(), shared.end()},
                                   .layers = workload.layers(),
                                   .scenario = job.scenario.name,
                                   .recipe = job.recipe_text,
                                   .seed = std::to_string(job.seed),
                                   .step = engine.steps_done()}),
                      kStateMark, arguments.is_forced);
}

Result<Ending> run_replica(const TrainCommandOptions& arguments, const HubAccess& access,
                           const v1::Task& task, Workload& workload, SessionOptions options) {
  return TrainRun(arguments, access, task, workload, std::move(options)).run();
}

}  // namespace longhaul::apps
