#include "apps/longhaul_torch/train_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/longhaul/model_file.h"
#include "apps/longhaul_torch/evaluation_duty.h"
#include "apps/longhaul_torch/train_identity.h"
#include "apps/longhaul_torch/train_news.h"
#include "longhaul/access/names.h"
#include "longhaul/base/file.h"
#include "longhaul/codec/digest.h"
#include "longhaul/session/book.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/sync/checkpoint.h"
#include "longhaul/sync/replica.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kPatience{0.2};  // of one wait, between looks at Ctrl-C
// Names in a checkpoint.
constexpr const char* kSlot = "slot";
constexpr const char* kThreads = "threads";
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

class Trainer {
 public:
  Trainer(const TrainArguments& arguments, Beginning beginning)
      : arguments_(arguments),
        access_(std::move(beginning.access)),
        checkpoints_(std::move(beginning.checkpoints)),
        resumed_(std::move(beginning.checkpoint)),
        job_(std::move(beginning.job)),
        workload_(std::move(beginning.workload)),
        identity_(identity_of(beginning.task, access_.name, workload_->layers())),
        connector_(make_grpc_connector(access_.address, access_.tls)),
        workers_(beginning.threads),
        news_(arguments.json, log_level(arguments.log), job_.scenario.train.steps, clock_) {}

  Result<Ending> run() {
    Status done = prepare_checkpoints();
    if (done.ok()) done = join();
    if (done.ok()) done = train();
    const bool is_at_the_end = done.ok() && !is_interrupted() && !is_stopped();
    if (is_at_the_end) done = finish();
    const bool is_cut_short = !done.ok() && (done.error().code == ErrorCode::kDeadline ||
                                             done.error().code == ErrorCode::kClosed);
    const bool is_on_its_way = is_cut_short || (done.ok() && !is_at_the_end);
    if (client_ && is_on_its_way && is_interrupted()) return leave();
    if (client_ && is_on_its_way && is_stopped()) return stop();
    if (client_) client_->leave();  // when all is told: a hub that everyone has left ends
    if (!done.ok()) return done.error();
    return Ending::kFinished;
  }

 private:
  // Makes the directory of checkpoints, and checks that the checkpoint belongs to this run.
  Status prepare_checkpoints() {
    if (checkpoints_.file.empty()) return Done{};
    std::error_code failed;
    if (checkpoints_.file.has_parent_path())
      std::filesystem::create_directories(checkpoints_.file.parent_path(), failed);
    if (failed) return Error{ErrorCode::kIo, checkpoints_.file.string() + ": " + failed.message()};
    writer_ = std::make_unique<CheckpointWriter>(checkpoints_.file);
    if (!arguments_.resume) return Done{};
    if (!resumed_) {
      news_.note("no checkpoint in " + checkpoints_.file.string() + " yet: starts without");
      return Done{};
    }
    Status fits = check_identity(identity_, *resumed_);
    if (!fits.ok()) {
      Error error = std::move(fits).error().within(checkpoints_.file.string());
      error.message += "; move it away, or name another place with --checkpoint";
      return error;
    }
    const std::size_t saved = threads_in(*resumed_);
    if (saved != workers_.count())
      news_.warn("goes on with --threads " + std::to_string(workers_.count()) +
                 " from a run with " + std::to_string(saved) +
                 ": steps that it does again may differ in rounding and count twice in part");
    return Done{};
  }

  // Why the hub does not let it in, and with what it came.
  [[nodiscard]] Error of_checkpoint(Error error) const {
    if (resumed_ && error.code != ErrorCode::kDeadline)
      error.message += " (it goes on from " + checkpoints_.file.string() + ')';
    return error;
  }

  Status join() {
    Result<ClientSetup> client = client_setup();
    if (!client.ok()) return client.error();
    const std::optional<std::uint32_t> wanted = client->slot;
    client_ = std::make_unique<HubClient>(std::move(client).value(), *connector_, clock_);
    duty_ = std::make_unique<EvaluationDuty>(job_.scenario.eval, *workload_, *client_, news_);
    const Result<Place> place =
        patiently([&](Deadline deadline) { return client_->place(deadline); });
    if (!place.ok()) return of_checkpoint(place.error());
    slot_ = place->slot;
    if (slot_ >= job_.scenario.replicas.size() || (resumed_ && slot_ != wanted))
      return Error{ErrorCode::kMismatch, "the hub gave a slot that is not this replica's"};
    Result<EngineSetup> engine = engine_setup(job_, workload_->layers());
    if (!engine.ok()) return engine.error();
    engine->slot = slot_;
    learner_ = workload_->make_learner(slot_);
    book_ = std::make_unique<Book>(book_file_, slot_, *learner_, *client_);
    replica_ = std::make_unique<Replica>(
        Replica::Setup{
            .engine = *engine,
            .workers = workers_,
            .clock = clock_,
            .step_time = arguments_.is_paced ? job_.scenario.replicas[slot_].step_time : Seconds{}},
        book_->learner(), *client_, book_->exchange());
    Status started = resumed_
                         ? replica_->resume(*resumed_)
                         : patiently([&](Deadline deadline) { return replica_->start(deadline); });
    if (!started.ok()) return started;
    book_->watch(*replica_, engine->clip);
    saved_step_ = replica_->engine().steps_done();
    saved_at_ = clock_.now();
    news_.started({.slot = slot_,
                   .step = saved_step_,
                   .threads = workers_.count(),
                   .is_resumed = resumed_.has_value()});
    is_started_ = true;
    resumed_.reset();
    return Done{};
  }

  [[nodiscard]] Result<ClientSetup> client_setup() const {
    const std::span initial = workload_->initial_parameters();
    ClientSetup setup{.name = access_.name,
                      .token = access_.token,
                      .slot = arguments_.slot,
                      .elements = initial.size(),
                      .layers = workload_->layers(),
                      .initial = std::make_shared<const ByteBuffer>(bytes_of(initial)),
                      .rate = arguments_.rate,
                      .compute = job_.scenario.train.step_time};
    if (!resumed_) return setup;
    const auto slot = resumed_->value<std::uint64_t>(kSlot);
    if (!slot.ok()) return slot.error();
    setup.slot = static_cast<std::uint32_t>(*slot);
    Status stands = stand_at(*resumed_, setup);
    if (!stands.ok()) return std::move(stands).error().within(checkpoints_.file.string());
    return setup;
  }

  // Waits as long as it takes, with a look around now and then.
  template <typename Try>
  auto patiently(Try what) -> decltype(what(Deadline())) {
    for (;;) {
      auto result = what(time_after(clock_.now(), kPatience));
      look_around();
      const bool is_late = !result.ok() && result.error().code == ErrorCode::kDeadline;
      if (!is_late || is_interrupted() || is_cut_off()) return result;
    }
  }

  // By the hub, before the last step.
  [[nodiscard]] bool is_stopped() const {
    return client_ && client_->finish_cause() == FinishCause::kStopped;
  }
  // Nothing comes any more of a hub that has stopped.
  [[nodiscard]] bool is_cut_off() const { return is_lost_ && is_stopped(); }

  void look_around() {
    for (const LinkNews& news : client_->take_link_news()) {
      is_lost_ = news.lost.has_value();
      news_.link(news);
    }
    duty_->look_around();
    if (!writer_) return;
    if (const auto outcome = writer_->take_outcome()) news_.checkpoint(*outcome, writer_->file());
  }

  Status train() {
    while (!is_interrupted()) {
      const Result<StepFacts> facts =
          patiently([&](Deadline deadline) { return replica_->step(deadline); });
      if (!facts.ok()) {
        const bool is_late = facts.error().code == ErrorCode::kDeadline;
        if (is_late && (is_interrupted() || is_cut_off())) return Done{};
        return facts.error();
      }
      if (facts->replaced) news_.replaced(*facts->replaced);
      if (facts->stance == Stance::kFinish) return Done{};
      if (facts->was_late) ++late_steps_;
      tell(*facts);
      if (replica_->engine().has_diverged()) return give_up();
      save_if_due();
    }
    return Done{};
  }

  void tell(const StepFacts& facts) {
    const std::size_t done = replica_->engine().steps_done();
    news_.step(facts, done);
    duty_->after_step(done, replica_->engine().shared());
    if (arguments_.stamps.empty() || done % job_.scenario.eval.every != 0) return;
    const double time_s = news_.time_s();
    const std::filesystem::path file =
        std::filesystem::path(arguments_.stamps) / (std::to_string(done) + ".f32");
    const Status written = write_file_atomically(file, bytes_of(replica_->engine().shared()));
    if (written.ok())
      news_.event("stamp", {{"step", done}, {"time_s", time_s}, {"file", file.string()}});
  }

  [[nodiscard]] State checkpoint() const {
    State state = replica_->save();
    state.values[kSlot] = slot_;
    state.values[kThreads] = workers_.count();
    save_layers(workload_->layers(), state);
    save_identity(identity_, state);
    return state;
  }

  void save_if_due() {
    if (!writer_ || !writer_->is_idle()) return;
    const std::uint64_t step = replica_->engine().steps_done();
    const TimePoint now = clock_.now();
    const bool is_due = checkpoints_.steps > 0 ? step >= saved_step_ + checkpoints_.steps
                                               : now - saved_at_ >= checkpoints_.time;
    if (!is_due) return;
    writer_->start(checkpoint());
    saved_step_ = step;
    saved_at_ = now;
  }

  // A checkpoint of it would be of no use.
  Status give_up() {
    client_->leave();
    return Error{ErrorCode::kNotFinite,
                 "diverged: " + std::to_string(Engine::kNonFiniteLimit) +
                     " gradients in a row were not finite (a smaller train.lr?)"};
  }

  [[nodiscard]] TrainNews::Rest rest() const {
    return {.step = replica_ && is_started_ ? replica_->engine().steps_done() : 0,
            .checkpoint = writer_ && is_started_ ? writer_->file().string() : std::string(),
            .again = command_to_resume(arguments_)};
  }

  // After Ctrl-C: in order, and so that it can go on from here.
  Result<Ending> leave() {
    const Status written = is_started_ && writer_ ? writer_->write(checkpoint()) : Done{};
    look_around();
    client_->leave();
    if (!written.ok()) return written.error();
    news_.interrupted(rest());
    return Ending::kInterrupted;
  }

  // The hub goes on later. The checkpoint is of a moment between two steps at which nothing is on
  // its way: all that was sent is in the hub's journal. The model is merged to the end only then.
  Result<Ending> stop() {
    const auto settled = [&](Deadline deadline) { return replica_->settle(deadline); };
    const bool is_settled =
        is_started_ && !replica_->engine().is_half_done() && patiently(settled).ok();
    const Status written = is_started_ && writer_ ? writer_->write(checkpoint()) : Done{};
    look_around();
    const TrainNews::Rest here = rest();
    Status merged = is_settled ? finish() : Done{};
    client_->leave();
    if (!written.ok()) return written.error();
    if (!merged.ok() && merged.error().code != ErrorCode::kDeadline) return merged.error();
    news_.stopped(here);
    return Ending::kStopped;
  }

  Status finish() {
    const Result<StepFacts> drained =
        patiently([&](Deadline deadline) { return replica_->finish(deadline); });
    if (!drained.ok()) return drained.error();
    if (drained->replaced) news_.replaced(*drained->replaced);
    book_->finish();
    const Engine& engine = replica_->engine();
    if (!is_stopped()) duty_->close(engine.steps_done(), engine.shared());
    if (!is_stopped() || arguments_.json)  // else there is another line
      news_.finished({.cause = client_->finish_cause(),
                      .steps = engine.steps_done(),
                      .digest = digest_text(engine.shared()),
                      .late_steps = late_steps_,
                      .reconnections = client_->reconnections(),
                      .differing_updates = client_->differing(),
                      .non_finite_steps = engine.non_finite_steps(),
                      .next = what_next()});
    if (!arguments_.stamps.empty()) {
      const std::filesystem::path file = std::filesystem::path(arguments_.stamps) / "final.f32";
      const Status written = write_file_atomically(file, bytes_of(engine.shared()));
      if (!written.ok()) return written;
      news_.event("final", {{"file", file.string()}});
    }
    return arguments_.save.empty() ? Status(Done{}) : save(engine);
  }

  Status save(const Engine& engine) {
    return write_output(arguments_.save,
                        model_bytes(engine.shared(), workload_->layers(),
                                    {.scenario = job_.scenario.name,
                                     .recipe = job_.recipe_text,
                                     .seed = std::to_string(job_.seed),
                                     .step = engine.steps_done()}),
                        {.mark = kStateMark, .is_forced = arguments_.is_forced});
  }

  [[nodiscard]] std::string what_next() const {
    if (arguments_.save.empty()) return "on the hub: longhaul export DIR --out model.safetensors";
    return "longhaul evaluate " + arguments_.save + ' ' + job_.scenario.name;
  }

  const TrainArguments& arguments_;
  HubAccess access_;
  CheckpointOptions checkpoints_;
  std::optional<State> resumed_;  // to go on from, until it has
  Job job_;
  std::unique_ptr<Workload> workload_;
  RunIdentity identity_;
  std::unique_ptr<Connector> connector_;
  SystemClock clock_;
  Workers workers_;
  TrainNews news_;
  std::unique_ptr<CheckpointWriter> writer_;  // nothing: no checkpoints
  std::uint64_t saved_step_ = 0;
  TimePoint saved_at_;
  std::size_t slot_ = 0;
  bool is_started_ = false;  // so that there is something to keep
  bool is_lost_ = false;     // the connection to the hub
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<HubClient> client_;
  std::unique_ptr<EvaluationDuty> duty_;
  BookFile book_file_{arguments_.book};
  std::unique_ptr<Book> book_;
  std::unique_ptr<Replica> replica_;
  std::size_t late_steps_ = 0;
};

}  // namespace

Result<std::optional<State>> find_checkpoint(const TrainArguments& arguments,
                                             const CheckpointOptions& options) {
  if (!arguments.resume || options.file.empty()) return std::optional<State>();
  Result<State> state = read_checkpoint(options.file);
  if (state.ok()) return std::optional(std::move(state).value());
  if (state.error().code == ErrorCode::kNotFound) return std::optional<State>();
  return state.error();
}

std::size_t threads_for(const TrainArguments& arguments, const std::string& hub,
                        const std::optional<State>& checkpoint) {
  if (arguments.threads > 0) return arguments.threads;
  if (checkpoint) return threads_in(*checkpoint);
  const Result<access::Address> address = access::parse_address(hub);
  return address.ok() && access::is_loopback(*address) ? 1 : all_cores();
}

Result<Ending> run_replica(const TrainArguments& arguments, Beginning beginning) {
  return Trainer(arguments, std::move(beginning)).run();
}

}  // namespace longhaul::apps
