#include "longhaul/session/train_session.h"

#include <utility>

#include "longhaul/session/interrupt.h"

namespace longhaul {
namespace {

constexpr Seconds kPatience{0.2};      // of one wait, between looks at Ctrl-C
constexpr const char* kSlot = "slot";  // in a checkpoint

}  // namespace

TrainSession::TrainSession(SessionOptions options, Workload& workload, Connector& connector,
                           const Clock& clock, SessionObserver& observer)
    : options_(std::move(options)),
      workload_(workload),
      connector_(connector),
      clock_(clock),
      observer_(observer),
      workers_(options_.threads) {}

Result<Ending> TrainSession::run() {
  Status done = prepare_checkpoints();
  if (done.ok()) done = join();
  if (done.ok()) done = train();
  const bool is_at_the_end = done.ok() && !is_interrupted() && !is_stopped();
  if (is_at_the_end) done = finish();
  const bool is_cut_short = !done.ok() && (done.error().code == ErrorCode::kDeadline ||
                                           done.error().code == ErrorCode::kClosed);
  const bool is_on_its_way = is_cut_short || (done.ok() && !is_at_the_end);
  if (client_ && is_on_its_way && is_interrupted()) return interrupt();
  if (client_ && is_on_its_way && is_stopped()) return stop();
  if (!done.ok()) return done.error();
  return Ending::kFinished;
}

void TrainSession::leave() {
  if (client_) client_->leave();
}

Status TrainSession::prepare_checkpoints() {
  const std::filesystem::path& file = options_.checkpoints.file;
  if (file.empty()) return Done{};
  std::error_code failed;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), failed);
  if (failed) return Error{ErrorCode::kIo, file.string() + ": " + failed.message()};
  writer_ = std::make_unique<CheckpointWriter>(file);
  return Done{};
}

Status TrainSession::join() {
  ClientOptions client = LONGHAUL_TRY(take_client_options());
  const std::optional<std::uint32_t> wanted = client.slot;
  client_ = std::make_unique<HubClient>(std::move(client), connector_, clock_);
  duty_ =
      std::make_unique<EvaluationDuty>(options_.job.scenario.eval, workload_, *client_, observer_);
  const Result<std::size_t> slot =
      patiently([&](Deadline deadline) { return client_->slot(deadline); });
  if (!slot.ok()) {
    Error error = slot.error();
    if (options_.checkpoint && error.code != ErrorCode::kDeadline)
      error.message += " (it goes on from " + options_.checkpoints.file.string() + ')';
    return error;
  }
  const bool is_own = !options_.checkpoint || *slot == wanted;
  if (*slot >= options_.job.scenario.replicas.size() || !is_own)
    return Error{ErrorCode::kMismatch, "the hub gave a slot that is not this replica's"};
  return begin(*slot);
}

Status TrainSession::begin(std::size_t slot) {
  slot_ = slot;
  EngineOptions engine = LONGHAUL_TRY(engine_options(options_.job, workload_.layers()));
  engine.slot = slot_;
  const Seconds pace = options_.job.scenario.replicas[slot_].step_time;
  learner_ = workload_.make_learner(slot_);
  book_ = std::make_unique<Book>(options_.book, slot_, *learner_, *client_);
  replica_ =
      std::make_unique<Replica>(Replica::Options{.engine = engine,
                                                 .workers = workers_,
                                                 .clock = clock_,
                                                 .step_time = options_.is_paced ? pace : Seconds{},
                                                 .goes_on = [this] { return goes_on(); }},
                                book_->learner(), *client_, book_->exchange());
  Status started = options_.checkpoint
                       ? replica_->resume(*options_.checkpoint)
                       : patiently([&](Deadline deadline) { return replica_->start(deadline); });
  if (!started.ok()) return started;
  book_->watch(*replica_, engine.clip);
  saved_step_ = replica_->engine().steps_done();
  saved_at_ = clock_.now();
  observer_.on_start(slot_, saved_step_);
  is_started_ = true;
  options_.checkpoint.reset();
  return Done{};
}

Result<ClientOptions> TrainSession::take_client_options() {
  ClientOptions options = std::move(options_.client);  // the model in it is not needed twice
  if (!options_.checkpoint) return options;
  const auto slot = LONGHAUL_TRY(options_.checkpoint->value<std::uint64_t>(kSlot));
  options.slot = static_cast<std::uint32_t>(slot);
  Status stands = stand_at(*options_.checkpoint, options);
  if (!stands.ok()) return std::move(stands).error().within(options_.checkpoints.file.string());
  return options;
}

template <typename Try>
auto TrainSession::patiently(Try what) -> decltype(what(Deadline())) {
  for (;;) {
    auto result = what(time_after(clock_.now(), kPatience));
    const bool is_late = !result.ok() && result.error().code == ErrorCode::kDeadline;
    if (!goes_on() || !is_late) return result;
  }
}

bool TrainSession::goes_on() {
  look_around();
  return !is_interrupted() && !is_cut_off();
}

bool TrainSession::is_stopped() const {
  return client_ && client_->finish_cause() == FinishCause::kStopped;
}

void TrainSession::look_around() {
  for (const LinkNews& news : client_->take_link_news()) {
    is_lost_ = news.has_value();
    observer_.on_link(news);
  }
  duty_->look_around();
  if (!writer_) return;
  if (const auto outcome = writer_->take_outcome()) observer_.on_checkpoint(*outcome);
}

Status TrainSession::train() {
  while (!is_interrupted()) {
    const Result<StepFacts> facts =
        patiently([&](Deadline deadline) { return replica_->step(deadline); });
    if (!facts.ok()) {
      const bool is_late = facts.error().code == ErrorCode::kDeadline;
      if (is_late && (is_interrupted() || is_cut_off())) return Done{};
      return facts.error();
    }
    if (facts->replaced) observer_.on_replaced(*facts->replaced);
    if (facts->stance == Stance::kFinish) return Done{};
    if (facts->was_late) ++late_steps_;
    const Engine& engine = replica_->engine();
    observer_.on_step(*facts, engine);
    duty_->after_step(engine.steps_done(), engine.shared());
    // A checkpoint of it would be of no use.
    if (engine.has_diverged())
      return Error{ErrorCode::kNotFinite,
                   "diverged: " + std::to_string(Engine::kNonFiniteLimit) +
                       " gradients in a row were not finite (a smaller train.lr?)"};
    save_if_due();
  }
  return Done{};
}

State TrainSession::checkpoint() const {
  State state = replica_->save();
  state.values[kSlot] = slot_;
  state.values.update(options_.marks.values);
  for (const auto& [name, blob] : options_.marks.blobs) state.blobs[name] = blob;
  return state;
}

Status TrainSession::write_checkpoint() {
  if (is_started_) step_ = replica_->engine().steps_done();
  Status written = is_started_ && writer_ ? writer_->write(checkpoint()) : Done{};
  look_around();
  return written;
}

void TrainSession::save_if_due() {
  if (!writer_ || !writer_->is_idle()) return;
  const CheckpointOptions& every = options_.checkpoints;
  const std::uint64_t step = replica_->engine().steps_done();
  const TimePoint now = clock_.now();
  const bool is_due =
      every.steps > 0 ? step >= saved_step_ + every.steps : now - saved_at_ >= every.time;
  if (!is_due) return;
  writer_->start(checkpoint());
  saved_step_ = step;
  saved_at_ = now;
}

Result<Ending> TrainSession::interrupt() {
  LONGHAUL_TRY(write_checkpoint());
  return Ending::kInterrupted;
}

// The hub goes on later. The checkpoint is written between two steps, when nothing is on its way:
// everything that was sent is in the hub's journal. Only then is the model merged to the end.
Result<Ending> TrainSession::stop() {
  const auto settled = [&](Deadline deadline) { return replica_->settle(deadline); };
  const bool is_settled =
      is_started_ && !replica_->engine().is_half_done() && patiently(settled).ok();
  const Status written = write_checkpoint();
  const Status merged = is_settled ? finish() : Done{};
  if (!written.ok()) return written.error();
  if (!merged.ok() && merged.error().code != ErrorCode::kDeadline) return merged.error();
  return Ending::kStopped;
}

Status TrainSession::finish() {
  const Result<StepFacts> drained =
      patiently([&](Deadline deadline) { return replica_->finish(deadline); });
  if (!drained.ok()) return drained.error();
  if (drained->replaced) observer_.on_replaced(*drained->replaced);
  book_->finish();
  const Engine& engine = replica_->engine();
  if (!is_stopped()) duty_->close(engine.steps_done(), engine.shared());
  is_merged_ = true;
  return Done{};
}

}  // namespace longhaul
