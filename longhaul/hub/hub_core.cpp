#include "longhaul/hub/hub_core.h"

#include <algorithm>
#include <new>
#include <utility>

#include "longhaul/base/units.h"
#include "longhaul/codec/digest.h"
#include "longhaul/hub/random_id.h"

namespace longhaul {
namespace {

constexpr std::size_t kPayloadOverhead = 1 << 16;

// The peer says how much memory a transfer needs: there may not be so much.
Result<std::optional<Arrival>> chunk_taken(Peer& peer, StreamId lane, v1::Chunk& chunk,
                                           TimePoint now) {
  try {
    return peer.lanes.on_chunk(lane, chunk, now);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kIo,
                 "no memory for a transfer of " + std::to_string(chunk.total()) + " bytes"};
  }
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
      roster_({.id = random_id(), .task = digest_of_task(options_.task)},
              options_.training.directory, options_.training.replicas, options_.weights),
      links_(options_.training.engine.recipe.planner != PlannerKind::kNone),
      first_model_(static_cast<std::uint64_t>(options_.training.engine.recipe.local.fragments),
                   options_.most_elements, errands_),
      desk_(roster_, links_, first_model_, log_, now_),
      gate_(roster_, log_, errands_, now_),
      courier_(roster_, end_, errands_, now_),
      evaluations_(options_.evaluates, options_.target) {
  options_.training.run = roster_.run().id;
  desk_.admit_by(options_.admit);
}

HubCore::~HubCore() = default;

Status HubCore::resume() {
  const std::optional<RunRecord> run = LONGHAUL_TRY(Journal::read_run(options_.training.directory));
  if (run) {
    if (run->task != roster_.run().task)
      return Error{ErrorCode::kMismatch,
                   options_.training.directory.string() +
                       " holds another run: its scenario, settings, recipe or seed differ"};
    roster_.resume(*run);
    options_.training.run = run->id;
    if (run->last_step) {  // its target is reached
      options_.training.steps = *run->last_step + 1;
      end_.expect(0, v1::CAUSE_TARGET);
    }
  }
  std::unique_ptr<ModelKeeper> keeper =
      LONGHAUL_TRY(ModelKeeper::resume(options_.training, workers_));
  if (run && !run->note.empty()) {
    log_.warning(run->note);
    LONGHAUL_TRY(set_aside(run->damaged));
    if (const Status kept = roster_.keep(); !kept.ok()) fail(kept.error());
  }
  if (!keeper) return Done{};
  for (const std::string& note : keeper->notes()) log_.warning(note);
  const std::span<const float> model = keeper->model().shared();
  first_model_.resume(keeper->options().engine.layers, model.size(),
                      keeper->journal().end() == RoundId{} ? digest_of(model) : 0);
  begin(std::move(keeper));
  is_announced_ = is_over();
  log_.info(is_announced_ ? "the run is done; who has missed its end may come for it within " +
                                to_string(options_.patience)
                          : "goes on at round " + to_string(training_->book().next()));
  return Done{};
}

void HubCore::on_event(StreamEvent event, TimePoint now) {
  now_ = now;
  if (auto* opened = std::get_if<StreamOpened>(&event.what)) {
    desk_.on_opened(event.stream, std::move(*opened));
  } else if (auto* arrived = std::get_if<FrameArrived>(&event.what)) {
    on_frame(event.stream, std::move(*arrived));
  } else if (std::holds_alternative<FrameWritten>(event.what)) {
    on_written(event.stream);
  } else if (auto* closed = std::get_if<StreamClosed>(&event.what)) {
    desk_.on_closed(event.stream);
    // A lane that breaks takes chunks with it, so the replica must connect anew.
    if (Peer* peer = roster_.peer_on(event.stream)) drop(*peer, closed->message);
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
  if (training_) evaluations_.name_evaluator(roster_);
  roster_.release_removed();
}

void HubCore::on_tick(TimePoint now) {
  now_ = now;
  desk_.end_silent(options_.silence);
  std::vector<Peer*> silent;
  for (const auto& [control, peer] : roster_.peers()) {
    peer->lanes.on_tick(now);
    if (now - peer->last_heard() > options_.silence || peer->is_overrun())
      silent.push_back(peer.get());
  }
  for (Peer* peer : silent) drop(*peer, "silent, or deaf, for too long");
  forget_who_never_started();
  if (may_start()) first_model_.ask_for_values(roster_, now_);
  tell_of_models();
  for (const auto& [control, peer] : roster_.peers()) {
    if (training_ && peer->progress.is_enrolled)
      links_.probe_idle(*peer, most_transfer_bytes(first_model_.elements()), now_);
  }
  close_rounds();
  if (training_) evaluations_.name_evaluator(roster_);
  roster_.release_removed();
  roster_.note_absent(now);
  if (training_) {
    if (!started_) first_step_ = training_->standing().step;
    if (!started_) started_ = now;
    rate_.add(now, training_->standing().step);
  }
  if (is_finished() && training_) find_final_digest();
  status_.is_finished = is_finished() && (!training_ || !status_.digest.empty());
}

void HubCore::on_strangers(std::uint64_t count, const std::string& why, TimePoint now) {
  now_ = now;
  status_.strangers += count;
  log_.warn("refused a connection: " + why, now_);
}

// A large model needs minutes on a slow link: the log says how far it is.
void HubCore::tell_of_models() {
  for (const auto& [control, peer] : roster_.peers()) {
    const auto from = peer->lanes.receiving(Cargo::kSnapshot);
    const auto to = peer->lanes.sending(Cargo::kSnapshot);
    if (!(from || to) || now_ < peer->progress.next_news) continue;
    peer->progress.next_news = time_after(now_, kNewsOfModelEvery);
    const TransferProgress progress = from ? *from : *to;
    tell_of(*peer, std::string(from ? "sends the first model: " : "is sent the model: ") +
                       bytes_text(progress.done) + " of " + bytes_text(progress.total));
  }
}

void HubCore::tell_of(const Peer& peer, const std::string& what) {
  log_.tell_of(peer.name(), what, roster_.of(peer).rejected > 0, now_);
}

// Updates and means are smaller. A replica that sends its model sends 4 bytes for each element.
std::size_t HubCore::most_transfer_bytes(std::uint64_t elements) {
  return 4 * elements * 4 + kPayloadOverhead;
}

void HubCore::on_frame(StreamId id, Frame frame) {
  Peer* peer = roster_.peer_on(id);
  if (peer == nullptr) {
    if (desk_.is_new(id)) return on_first_frame(id, frame);
    return desk_.on_guest(id, frame);
  }
  peer->heard(now_);
  if (peer->control() != id) {
    const Status taken = frame.has_chunk() ? on_chunk(*peer, id, *frame.mutable_chunk())
                                           : corrupt_payload("not a chunk on a lane");
    if (!taken.ok()) reject(*peer, taken.error().message);
    return;
  }
  on_control(*peer, frame);
  start_if_ready();
  if (roster_.peers().contains(id)) peer->read_control();
}

void HubCore::on_written(StreamId id) {
  if (desk_.on_written(id)) return;
  Peer* peer = roster_.peer_on(id);
  if (peer == nullptr) return;
  if (peer->control() == id) return peer->on_control_written();
  peer->lanes.on_written(id);
  courier_.send_means(*peer);
}

void HubCore::drop(Peer& peer, const std::string& why) {
  tell_of(peer, "is gone: " + why);
  if (training_) training_->book().leave(peer.slot());
  evaluations_.forget(peer);
  roster_.remove(peer);
}

void HubCore::reject(Peer& peer, const std::string& why) {
  ++status_.rejected;
  ++roster_.of(peer).rejected;
  log_.warn("replica " + peer.name() + ": rejected: " + why, now_);
  drop(peer, "what it sent was rejected");
}

void HubCore::on_control(Peer& peer, const Frame& frame) {
  if (frame.has_ping()) {
    Frame pong;
    pong.mutable_pong()->set_id(frame.ping().id());
    if (const auto up = links_.measured(peer.name()).up.typical())
      pong.mutable_pong()->set_up_bytes_per_s(up->bytes_per_second);
    (void)peer.send(std::move(pong));
  } else if (frame.has_report()) {
    on_report(peer, frame.report());
  } else if (frame.has_evaluation()) {
    on_evaluation(peer, frame.evaluation());
  } else if (frame.has_leave()) {
    roster_.of(peer).has_left = true;
    drop(peer, is_over() ? "it has finished" : "it left");
  }
}

void HubCore::on_report(Peer& peer, const v1::Report& report) {
  roster_.take_report(peer, report);
  links_.take_report(peer.name(), report, now_);
  if (!training_ || report.restarts() != peer.progress.restarts) return;
  if (peer.progress.awaits_snapshot) return;  // of a state that is about to go
  // A replica that was given a snapshot reports when it has it.
  if (peer.progress.is_served && report.step() >= peer.progress.first_step)
    courier_.on_loaded(peer);
  if (!report.has_digest()) return;
  const std::optional<std::uint64_t> expected = training_->digest_before(report.step());
  if (!expected || *expected == report.digest()) return;
  // Each costs a whole model: the next one not before this one is out.
  if (peer.lanes.is_sending(Cargo::kSnapshot))
    return reject(peer, "a report of a state that it cannot have yet");
  ++status_.mismatches;
  log_.warn("replica " + peer.name() + " has another shared model before step " +
                std::to_string(report.step()) + ": it is given the hub's",
            now_);
  courier_.bring_in(peer);
}

// A replica whose duty has passed to another may still tell what it was scoring.
void HubCore::on_evaluation(Peer& peer, const v1::Evaluation& evaluation) {
  if (!training_ || !roster_.of(peer).was_evaluator) return;
  const bool is_end = is_over() && evaluation.step() == *end_.last_step() + 1;
  if (!Evaluations::is_possible(evaluation, training_->standing().step, is_end))
    return reject(peer, "an evaluation that cannot be");
  if (!evaluations_.take(evaluation, started_ ? Seconds(now_ - *started_) : Seconds(0))) return;
  Frame frame;
  *frame.mutable_evaluation() = evaluation;
  for (const auto& [control, other] : roster_.peers()) {
    if (other.get() != &peer) (void)other->send(frame);
  }
  if (options_.watcher) options_.watcher({.outcome = {}, .time = now_, .evaluation = evaluation});
  if (evaluation.is_closing()) return;
  if (options_.ends_at_target && evaluations_.has_reached_target()) finish(v1::CAUSE_TARGET);
}

Status HubCore::on_chunk(Peer& peer, StreamId lane, v1::Chunk& chunk) {
  if (chunk.cargo() == v1::CARGO_UPDATE && training_ && chunk.step() > training_->standing().step)
    return corrupt_payload("an update of a step that nobody can have reached");
  std::optional<Arrival> arrival = LONGHAUL_TRY(chunk_taken(peer, lane, chunk, now_));
  return arrival ? on_arrival(peer, *std::move(arrival)) : Done{};
}

Status HubCore::on_arrival(Peer& peer, Arrival arrival) {
  links_.take_arrival(peer.name(), arrival, now_);
  roster_.of(peer).bytes_up += arrival.bytes.size();
  if (arrival.id.cargo == Cargo::kUpdate) {
    LONGHAUL_TRY(gate_.take(peer, std::move(arrival), options_.training.engine.recipe.codec));
  } else if (arrival.id.cargo == Cargo::kSnapshot) {
    LONGHAUL_TRY(first_model_.receive(
        peer, std::move(arrival.bytes),
        [this, control = peer.control()](const Status& fits) { on_first_model(control, fits); }));
  }
  start_if_ready();
  return Done{};
}

void HubCore::on_first_model(StreamId control, const Status& fits) {
  if (fits.ok()) return start_if_ready();
  if (Peer* sender = roster_.peer_on(control)) reject(*sender, fits.error().message);
}

}  // namespace longhaul
