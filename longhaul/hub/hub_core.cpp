#include "longhaul/hub/hub_core.h"

#include <algorithm>
#include <new>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/digest.h"
#include "longhaul/hub/random_id.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostTransfers = 1100;  // as many rounds, and a probe
constexpr std::size_t kPayloadOverhead = 1 << 16;
constexpr std::size_t kPendingOverhead = std::size_t{64} << 20U;
constexpr std::size_t kMostNewcomers = 512;
constexpr std::size_t kMostNewsOfAReplica = 10;  // lines a minute: it comes, it goes

// The peer says how much memory a transfer needs: there may not be so much.
Result<std::optional<Arrival>> chunk_taken(Session& session, StreamId lane, v1::Chunk& chunk,
                                           TimePoint now) {
  try {
    return session.lanes.on_chunk(lane, chunk, now);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kIo,
                 "no memory for a transfer of " + std::to_string(chunk.total()) + " bytes"};
  }
}

Frame goodbye(const std::string& why, bool is_over) {
  Frame frame;
  frame.mutable_goodbye()->set_why(why);
  frame.mutable_goodbye()->set_is_over(is_over);
  return frame;
}

std::uint64_t digest_of_task(const v1::Task& task) {
  const std::string bytes = task.SerializeAsString();
  return digest_of(std::as_bytes(std::span(bytes)));
}

}  // namespace

HubCore::HubCore(HubOptions options, Workers& workers, Errands& errands, Log log)
    : options_(std::move(options)),
      workers_(workers),
      errands_(errands),
      log_(std::move(log)),
      run_{.id = random_id(), .task = digest_of_task(options_.task)} {
  options_.training.run = run_.id;
}

HubCore::~HubCore() = default;

Status HubCore::resume() {
  const Result<std::optional<RunRecord>> run = Journal::read_run(options_.training.directory);
  if (!run.ok()) return run.error();
  if (*run) {
    if ((*run)->task != run_.task)
      return Error{ErrorCode::kMismatch,
                   options_.training.directory.string() +
                       " holds another run: its scenario, settings, recipe or seed differ"};
    run_ = **run;
    options_.training.run = run_.id;
    if (run_.last_step) {  // its target is reached
      options_.training.steps = *run_.last_step + 1;
      finish_cause_ = v1::CAUSE_TARGET;
    }
    for (const auto& [name, slot] : run_.slots) replicas_[name].status.slot = slot;
  }
  Result<std::unique_ptr<ModelKeeper>> keeper = ModelKeeper::resume(options_.training, workers_);
  if (!keeper.ok()) return keeper.error();
  if (!run_.note.empty()) {
    log_.warning(run_.note);
    const Status kept = set_aside(run_.damaged);
    if (!kept.ok()) return kept.error();
    keep_run();
  }
  if (!*keeper) return Done{};
  const ModelKeeper& kept = **keeper;
  for (const std::string& note : kept.notes()) log_.warning(note);
  elements_ = kept.model().shared().size();
  layers_ = kept.options().engine.layers;
  if (kept.journal().end() == RoundId{}) initial_digest_ = digest_of(kept.model().shared());
  training_ = std::make_unique<Training>(std::move(keeper).value());
  if (options_.training.steps > 0) last_step_ = options_.training.steps - 1;
  const RoundId next = training_->book().next();
  is_announced_ = is_over();
  log_.info(is_announced_ ? "the run is done; who has missed its end may come for it within " +
                                to_string(options_.patience)
                          : "goes on at round " + to_string(next));
  return Done{};
}

void HubCore::on_event(StreamEvent event, TimePoint now) {
  now_ = now;
  if (auto* opened = std::get_if<StreamOpened>(&event.what)) {
    on_opened(event.stream, std::move(opened->stream));
  } else if (auto* arrived = std::get_if<FrameArrived>(&event.what)) {
    on_frame(event.stream, std::move(arrived->frame), now);
  } else if (std::holds_alternative<FrameWritten>(event.what)) {
    on_written(event.stream);
  } else if (auto* closed = std::get_if<StreamClosed>(&event.what)) {
    on_closed(event.stream, closed->why);
  }
  settle();
}

void HubCore::on_errand(const Errands::End& end, TimePoint now) {
  now_ = now;
  end();
  settle();
}

void HubCore::settle() {
  close_rounds();
  if (is_over()) announce_end();
  name_evaluator();
  dropped_.clear();
}

// Those who have not said who they are yet cost memory: there are not too many of them.
void HubCore::on_opened(StreamId id, StreamPtr stream) {
  if (newcomers_.size() >= kMostNewcomers) {
    ++refused_;
    return warn("refused a connection: too many that have not said who they are");
  }
  stream->read();
  newcomers_[id] = {.stream = std::move(stream), .since = now_};
}

void HubCore::on_tick(TimePoint now) {
  now_ = now;
  const auto is_silent = [&](TimePoint since) { return now - since > options_.silence; };
  std::erase_if(newcomers_, [&](const auto& entry) { return is_silent(entry.second.since); });
  std::erase_if(guests_, [&](const auto& guest) { return is_silent(guest.second.last_moved()); });
  std::vector<Session*> silent;
  for (const auto& [id, session] : sessions_) {
    session->lanes.on_tick(now);
    if (is_silent(session->last_heard()) || session->is_overrun()) silent.push_back(session.get());
  }
  for (Session* session : silent) drop(*session, "silent, or deaf, for too long");
  forget_who_never_started();
  ask_for_state();
  tell_of_models();
  probe_idle_links();
  close_rounds();
  name_evaluator();
  dropped_.clear();
  for (auto& [name, replica] : replicas_) {
    if (replica.session == nullptr && !replica.away_since) replica.away_since = now;
  }
  if (training_) {
    if (!started_) first_step_ = training_->standing().step;
    if (!started_) started_ = now;
    rate_.add(now, training_->standing().step);
  }
  const bool is_finished = is_finished_at(now);
  if (is_finished && training_) find_final_digest();
  is_finished_ = is_finished && (!training_ || !final_digest_.empty());
}

void HubCore::find_final_digest() {
  if (!final_digest_.empty() || std::exchange(is_finding_digest_, true)) return;
  run_errand(
      errands_, [keeper = training_->keeper()] { return digest_text(keeper->model().shared()); },
      [this](std::string digest) {
        is_finding_digest_ = false;
        final_digest_ = std::move(digest);
      });
}

void HubCore::on_strangers(std::uint64_t count, const std::string& why, TimePoint now) {
  now_ = now;
  strangers_ += count;
  warn("refused a connection: " + why);
}

void HubCore::warn(const std::string& what) {
  if (const std::optional<std::string> line = repeats_.line_for(what, now_)) log_.warning(*line);
}

void HubCore::tell_of(const Session& session, const std::string& what) {
  const std::string line = "replica " + session.identity().name + ' ' + what;
  const bool is_rude = replica_of(session).status.rejected > 0;
  const std::optional<std::string> told =
      is_rude ? repeats_.line_for(line, now_)
              : repeats_.line_of_kind("replica " + session.identity().name, line,
                                      kMostNewsOfAReplica, now_);
  if (told) log_.info(*told);
}

// Nobody can have finished the step that the model stands at: its means are not all there. Frames
// of a control stream keep their order, so everyone hears of it before those means.
//
// A run that is stopped goes on later from here: nothing is merged before it is due.
void HubCore::finish(v1::FinishCause cause) {
  is_stopping_ = is_stopping_ || cause == v1::CAUSE_STOPPED;
  if (cause != v1::CAUSE_TARGET) is_asked_to_finish_ = true;
  if (!training_) {
    finish_cause_ = cause;
    for (const auto& [id, session] : sessions_) tell_last_step(*session);
    return end("the run was ended before it started", true);
  }
  if (training_->is_closing()) {  // where the model stands is known when the round has closed
    if (!pending_finish_) pending_finish_ = cause;
    return;
  }
  const std::uint64_t step = training_->standing().step;
  if (last_step_ && *last_step_ <= step) return;
  if (cause == v1::CAUSE_TARGET) {  // a hub that is killed now must know where the others end
    run_.last_step = step;
    keep_run();
    if (failure_) return;
  }
  last_step_ = step;
  finish_cause_ = cause;
  if (cause != v1::CAUSE_STOPPED) {
    errands_.run([keeper = training_->keeper(), steps = step + 1]() -> Errands::End {
      keeper->end_after(steps);
      return [] {};
    });
  }
  for (const auto& [id, session] : sessions_) tell_last_step(*session);
}

// Who is away still needs the last means, and gets some time to come for them. Those who gave up
// leave rounds behind that nobody closes. Of a hub that stops they come for them later.
bool HubCore::is_finished_at(TimePoint now) const {
  if (is_stopping_) return sessions_.empty();
  if (!training_ || !last_step_ || !sessions_.empty()) return false;
  return (is_over() || is_asked_to_finish_) &&
         std::ranges::none_of(replicas_, [&](const auto& entry) {
           const Replica& replica = entry.second;
           return !replica.status.has_left &&
                  now - replica.away_since.value_or(now) <= options_.patience;
         });
}

void HubCore::end(const std::string& why, bool is_over) {
  for (const auto& [id, session] : sessions_) (void)session->send(goodbye(why, is_over));
}

Session* HubCore::session_of(StreamId stream) {
  if (const auto control = sessions_.find(stream); control != sessions_.end())
    return control->second.get();
  const auto lane = lanes_.find(stream);
  return lane == lanes_.end() ? nullptr : lane->second;
}

CargoOptions HubCore::limits() const {
  const std::size_t most = 4 * elements_ * 4 + kPayloadOverhead;
  return {.most_bytes = most,
          .most_transfers = kMostTransfers,
          .most_pending_bytes = 4 * most + kPendingOverhead};
}

void HubCore::on_frame(StreamId id, Frame frame, TimePoint now) {
  Session* session = session_of(id);
  if (session == nullptr) {
    if (newcomers_.contains(id)) return on_first_frame(id, frame, now);
    return on_guest(id, frame, now);
  }
  session->heard(now);
  if (session->control() != id) {
    if (frame.has_chunk()) return on_chunk(*session, id, *frame.mutable_chunk(), now);
    return reject(*session, "not a chunk on a lane");
  }
  on_control(*session, frame);
  start_if_ready();
  if (sessions_.contains(id)) session->read_control();
}

void HubCore::on_written(StreamId id) {
  if (const auto guest = guests_.find(id); guest != guests_.end())
    return guest->second.on_written(now_);
  Session* session = session_of(id);
  if (session == nullptr) return;
  if (session->control() == id) {
    session->on_control_written();
    return;
  }
  session->lanes.on_written(id);
  send_means(*session);
}

void HubCore::on_closed(StreamId id, const Error& why) {
  newcomers_.erase(id);
  guests_.erase(id);
  // A lane that breaks takes chunks with it, so the replica must connect anew.
  if (Session* session = session_of(id)) drop(*session, why.message);
}

// Its open rounds close without it; it may come back.
void HubCore::drop(Session& session, const std::string& why) {
  Replica& replica = replica_of(session);
  tell_of(session, "is gone: " + why);
  if (training_) training_->book().leave(session.identity().slot);
  replica.session = nullptr;
  if (evaluator_ == &session) evaluator_ = nullptr;
  is_evaluator_known_ = false;
  replica.status.is_connected = false;
  replica.status.is_enrolled = false;
  session.close();
  std::erase_if(lanes_, [&](const auto& lane) { return lane.second == &session; });
  auto node = sessions_.extract(session.control());
  dropped_.push_back(std::move(node.mapped()));
}

// Who goes before the start leaves nothing behind: its slot is free, and so is the choice of the
// model if nobody else is here.
void HubCore::forget_who_never_started() {
  if (training_ || failure_ || is_starting_) return;
  const auto is_away = [](const auto& entry) { return entry.second.session == nullptr; };
  if (std::erase_if(replicas_, is_away) == 0) return;
  std::erase_if(run_.slots, [&](const auto& slot) { return !replicas_.contains(slot.first); });
  if (replicas_.empty()) {
    elements_ = initial_digest_ = 0;
    layers_.reset();
    initial_.clear();
  }
  keep_run();
}

void HubCore::reject(Session& session, const std::string& why) {
  ++rejected_;
  ++replica_of(session).status.rejected;
  warn("replica " + session.identity().name + ": rejected: " + why);
  drop(session, "what it sent was rejected");
}

void HubCore::on_control(Session& session, const Frame& frame) {
  if (frame.has_ping()) {
    Frame pong;
    pong.mutable_pong()->set_id(frame.ping().id());
    if (const auto up = replica_of(session).status.measured.up.typical())
      pong.mutable_pong()->set_up_bytes_per_s(up->bytes_per_second);
    (void)session.send(std::move(pong));
  } else if (frame.has_report()) {
    on_report(session, frame.report());
  } else if (frame.has_evaluation()) {
    on_evaluation(session, frame.evaluation());
  } else if (frame.has_leave()) {
    replica_of(session).status.has_left = true;
    drop(session, is_over() ? "it has finished" : "it left");
  }
}

void HubCore::on_report(Session& session, const v1::Report& report) {
  measure(replica_of(session), report);
  if (!training_ || report.restarts() != session.progress.restarts) return;
  if (session.progress.awaits_snapshot) return;  // of a state that is about to go
  // A replica that was given a snapshot reports when it has it.
  if (session.progress.is_served && report.step() >= session.progress.first_step) {
    session.progress.is_loaded = true;
    enroll_if_caught_up(session);
  }
  if (!report.has_digest()) return;
  const std::optional<std::uint64_t> expected = training_->digest_before(report.step());
  if (!expected || *expected == report.digest()) return;
  // Each costs a whole model: the next one not before this one is out.
  if (session.lanes.is_sending(Cargo::kSnapshot))
    return reject(session, "a report of a state that it cannot have yet");
  ++mismatches_;
  warn("replica " + session.identity().name + " has another shared model before step " +
       std::to_string(report.step()) + ": it is given the hub's");
  bring_in(session);
}

void HubCore::on_chunk(Session& session, StreamId lane, v1::Chunk& chunk, TimePoint now) {
  if (chunk.cargo() == v1::CARGO_UPDATE && training_ && chunk.step() > training_->standing().step) {
    reject(session, "an update of a step that nobody can have reached");
    return;
  }
  Result<std::optional<Arrival>> arrival = chunk_taken(session, lane, chunk, now);
  if (!arrival.ok()) {
    reject(session, arrival.error().message);
    return;
  }
  if (arrival->has_value()) on_arrival(session, std::move(**arrival), now);
}

void HubCore::on_arrival(Session& session, Arrival arrival, TimePoint now) {
  Replica& replica = replica_of(session);
  learn(replica.up, replica.status.measured.up,
        {.bytes = static_cast<double>(arrival.timed_bytes),
         .duration = arrival.duration,
         .is_probe = arrival.id.cargo == Cargo::kProbe});
  replica.status.bytes_up += arrival.bytes.size();
  switch (arrival.id.cargo) {
    case Cargo::kUpdate:
      on_update(session, std::move(arrival), now);
      break;
    case Cargo::kSnapshot:
      on_state(session, std::move(arrival));
      break;
    case Cargo::kProbe:
      ++session.probes.came;
      break;
    case Cargo::kMean:
      break;
  }
  start_if_ready();
}

void HubCore::keep_run() {
  if (options_.training.directory.empty()) return;
  const Status kept = Journal::write_run(options_.training.directory, run_);
  if (!kept.ok()) fail(kept.error());
}

// The journal cannot be written: going on could lose a round that some have merged.
void HubCore::fail(const Error& why) {
  log_.error(why.message);
  end(why.message, false);
  failure_ = why;
  training_.reset();
}

HubStatus HubCore::status() const {
  HubStatus status{.run = run_.id,
                   .is_started = training_ != nullptr,
                   .is_finished = is_finished_,
                   .failure = failure_,
                   .elements = elements_,
                   .slots = options_.training.replicas,
                   .sessions = sessions_.size(),
                   .steps = last_step_ ? *last_step_ + 1 : 0,
                   .cause = finish_cause_,
                   .steps_per_s = rate_.per_second(),
                   .evaluation = evaluation_,
                   .target = options_.target,
                   .ends_at_target = options_.ends_at_target,
                   .digest = final_digest_,
                   .reason = reason_,
                   .step_time = cost_.step_time(),
                   .predicted_step_time = predicted_step_time(),
                   .refused = refused_,
                   .strangers = strangers_,
                   .rejected = rejected_,
                   .mismatches = mismatches_};
  if (training_) {
    status.next_round = training_->book().next().step;
    status.plan = training_->standing().plan;
    status.step = training_->standing().step;
    status.steps_here = status.step - std::min(first_step_, status.step);
    status.time = started_ ? Seconds(now_ - *started_) : Seconds(0);
    if (status.steps > status.step) status.left = rate_.time_for(status.steps - status.step);
  }
  const std::vector<double> smoothed = smoothed_metric(options_.target, evaluations_);
  if (!smoothed.empty()) status.smoothed = smoothed.back();
  for (const auto& [name, replica] : replicas_) status.replicas[name] = replica.status;
  return status;
}

}  // namespace longhaul
