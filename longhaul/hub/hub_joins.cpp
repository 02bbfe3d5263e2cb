// From a stream to a member: joins, lanes, the start, and how a replica that was away is brought
// back.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "longhaul/access/names.h"
#include "longhaul/base/memory.h"
#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/hub/hub_core.h"
#include "longhaul/hub/random_id.h"

namespace longhaul {
namespace {

constexpr std::uint32_t kMostLanes = 64;
constexpr Seconds kNewsOfModelEvery{10.0};
constexpr Seconds kSurelyAlive{1.0};  // what was on its way has come by then

Error refused(const std::string& why) { return Error{ErrorCode::kMismatch, why}; }

Error other_version(std::uint32_t theirs) {
  return refused("this hub speaks protocol " + std::to_string(kProtocolVersion) +
                 ", the replica protocol " + std::to_string(theirs));
}

// It will not help to try again. Else the hub may be able to let it in later.
bool is_final(const Error& why) {
  return why.code == ErrorCode::kMismatch || why.code == ErrorCode::kInvalidArgument;
}

}  // namespace

void HubCore::on_first_frame(StreamId id, const Frame& frame, TimePoint now) {
  if (frame.has_join()) {
    on_join(id, frame.join(), now);
  } else if (frame.has_open_lane()) {
    on_lane(id, frame.open_lane(), now);
  } else if (frame.has_ask()) {
    on_ask(id, frame.ask());
  } else if (frame.has_ask_status()) {
    on_ask_status(id, frame.ask_status());
  } else if (frame.has_open_probe()) {
    on_probe(id, frame.open_probe(), now);
  } else {
    ++refused_;
    warn("refused a connection: it does not begin as the protocol does");
    newcomers_.erase(id);  // closes it
  }
}

void HubCore::refuse(StreamId id, const std::string& who, const Error& why) {
  ++refused_;
  warn("refused " + who + ": " + why.message);
  Frame frame;
  frame.mutable_refused()->set_why(why.message);
  frame.mutable_refused()->set_is_final(is_final(why));
  // The stream goes when it is dropped, which waits for the frame to be written.
  newcomers_.at(id).stream->write(std::move(frame));
}

// Who it says it is, and whether that one is invited. If not, it is refused.
bool HubCore::is_admitted(StreamId id, const Introduction& from) {
  if (const Status named = access::check_name(from.name); !named.ok()) {
    refuse(id, "a replica", named.error());
    return false;
  }
  Status admitted = Done{};
  if (from.protocol != kProtocolVersion) {
    admitted = other_version(from.protocol);
  } else if (options_.admit) {
    admitted = options_.admit(from.name, from.token, newcomers_.at(id).stream->peer_name());
  }
  if (!admitted.ok()) refuse(id, from.name, admitted.error());
  return admitted.ok();
}

Status HubCore::check_model(const v1::Join& join) const {
  if (join.wire() != kWireVersion)
    return refused("this hub knows payloads of version " + std::to_string(kWireVersion) +
                   ", the replica sends version " + std::to_string(join.wire()));
  if (join.lanes() < 1 || join.lanes() > kMostLanes)
    return refused("a number of lanes out of range");
  if (join.elements() < 1 || join.elements() > options_.most_elements)
    return refused("a model of " + std::to_string(join.elements()) +
                   " parameters; this hub takes at most " + std::to_string(options_.most_elements));
  if (!join.is_fresh() && join.run() != run_.id)
    return refused(
        "it has the state of another run than this hub's, which may have begun anew; move its "
        "checkpoint away, or name another place with --checkpoint");
  const Recipe& recipe = options_.training.engine.recipe;
  if (join.elements() < static_cast<std::uint64_t>(recipe.local.fragments))
    return refused("a model with fewer parameters than fragments");
  const Result<LayerTable> layers = layers_from(join.layers(), join.elements());
  if (!layers.ok()) return layers.error();
  if (elements_ == 0) return Done{};
  const bool is_other = join.elements() != elements_ || (layers_ && *layers != *layers_);
  if (is_other) return refused("it has another model than the replicas that are here");
  if (join.is_fresh() && initial_digest_ != 0 && join.initial() != initial_digest_)
    return refused("it starts from other parameters than the replicas that are here (seed?)");
  return Done{};
}

Result<std::size_t> HubCore::slot_for(const v1::Join& join) const {
  const auto known = replicas_.find(join.name());
  if (known != replicas_.end()) return known->second.status.slot;
  std::set<std::size_t> taken;
  for (const auto& [name, replica] : replicas_) taken.insert(replica.status.slot);
  const std::size_t slots = options_.training.replicas;
  if (join.has_slot()) {
    if (join.slot() < slots && !taken.contains(join.slot())) return std::size_t{join.slot()};
    return refused("slot " + std::to_string(join.slot()) + " is taken or not there");
  }
  for (std::size_t slot = 0; slot < slots; ++slot) {
    if (!taken.contains(slot)) return slot;
  }
  return refused("the scenario has " + std::to_string(slots) + " replicas, and all are taken");
}

// While the hub stops, only those come in whose updates the others wait for.
Status HubCore::check_time(const v1::Join& join) const {
  const auto known = replicas_.find(join.name());
  if (is_stopping_) {
    const bool is_awaited =
        training_ && !is_over() && known != replicas_.end() && !known->second.status.has_left;
    if (is_awaited) return Done{};
    return Error{ErrorCode::kClosed, "the hub is stopping; come back later"};
  }
  if (is_over() && known == replicas_.end()) return refused("this run is done");
  return Done{};
}

// After a crash it may be the old connection of the one that wants in: that one is silent, and goes
// soon. One that is heard of is another replica.
Error HubCore::name_taken(Replica& replica, TimePoint now) {
  if (!replica.doubled_since) replica.doubled_since = now;
  const Seconds alive = replica.session->last_heard() - *replica.doubled_since;
  if (alive < kSurelyAlive) return {ErrorCode::kClosed, "a replica of this name is here already"};
  return refused("another replica of this name is here; every replica needs a name of its own");
}

void HubCore::on_join(StreamId id, const v1::Join& join, TimePoint now) {
  const std::string& name = join.name();
  if (!is_admitted(id, {.protocol = join.protocol(), .name = name, .token = join.token()})) return;
  if (failure_) return refuse(id, name, {ErrorCode::kClosed, failure_->message});
  if (const Status open = check_time(join); !open.ok()) return refuse(id, name, open.error());
  if (const Status fits = check_model(join); !fits.ok()) return refuse(id, name, fits.error());
  const Result<std::size_t> slot = slot_for(join);
  if (!slot.ok()) return refuse(id, name, slot.error());
  if (!replicas_.contains(name)) {
    replicas_[name].status.slot = *slot;
    run_.slots[name] = *slot;
    keep_run();
    if (failure_) return refuse(id, name, {ErrorCode::kClosed, failure_->message});
  }
  if (Session* earlier = replicas_[name].session) {
    if (join.session() != earlier->identity().id)
      return refuse(id, name, name_taken(replicas_[name], now));
    drop(*earlier, "it connected anew");
  }
  elements_ = join.elements();
  layers_ = layers_from(join.layers(), elements_).value();
  if (join.is_fresh() && initial_digest_ == 0) initial_digest_ = join.initial();
  auto session = std::make_unique<Session>(Session::Identity{.name = name,
                                                             .slot = *slot,
                                                             .id = random_id(),
                                                             .lanes = join.lanes(),
                                                             .rate = options_.rate},
                                           id, std::move(newcomers_.extract(id).mapped().stream),
                                           limits(), now);
  session->progress.is_fresh = join.is_fresh();
  session->progress.next_mean = join.is_fresh() ? RoundId{} : round_from(join.next_round());
  session->progress.first_step = join.is_fresh() ? 0 : join.first_step();
  session->progress.step = join.is_fresh() ? 0 : join.step();
  if (!join.is_fresh() && join.has_own_until())
    session->progress.own_until = round_from(join.own_until());
  Replica& replica = replicas_[name];
  replica.session = session.get();
  replica.status.has_left = false;
  replica.away_since.reset();
  replica.doubled_since.reset();
  if (*slot < options_.weights.size()) replica.weight = options_.weights[*slot];
  replica.status.slot = *slot;
  StepTimer& compute = replica.status.measured.compute;
  if (is_plausible(join.compute_s()) && compute.typical().count() == 0)
    compute.add(Seconds(join.compute_s()));
  Frame frame;
  *frame.mutable_welcome() = welcome_for(*session, join);
  (void)session->send(std::move(frame));
  session->read_control();
  sessions_.emplace(id, std::move(session));
}

v1::Welcome HubCore::welcome_for(const Session& session, const v1::Join& join) const {
  v1::Welcome welcome;
  welcome.set_session(session.identity().id);
  welcome.set_run(run_.id);
  welcome.set_slot(static_cast<std::uint32_t>(session.identity().slot));
  welcome.set_replicas(static_cast<std::uint32_t>(options_.training.replicas));
  const auto& measured = replicas_.at(session.identity().name).status.measured;
  welcome.set_probe(options_.training.engine.recipe.planner != PlannerKind::kNone &&
                    !measured.is_complete());
  if (!training_ || join.is_fresh()) return welcome;
  if (const auto last =
          training_->last_of(session.identity().slot, round_from(join.next_round()))) {
    *welcome.mutable_contributed()->mutable_round() = to_message(last->round);
    *welcome.mutable_contributed()->mutable_attendance() = to_message(last->attendance);
  }
  return welcome;
}

void HubCore::on_lane(StreamId id, const v1::OpenLane& lane, TimePoint now) {
  const auto owner = std::ranges::find_if(
      sessions_, [&](const auto& entry) { return entry.second->identity().id == lane.session(); });
  if (owner == sessions_.end() || owner->second->lanes.count() >= kMostLanes) {
    ++refused_;
    warn("refused a lane: of no session that is open");
    newcomers_.erase(id);
    return;
  }
  Session& session = *owner->second;
  session.heard(now);
  const bool was_connected = session.is_connected();
  lanes_[id] = &session;
  session.lanes.add(id, std::move(newcomers_.extract(id).mapped().stream));
  if (session.is_connected() && !was_connected) {
    on_connected(session);
    start_if_ready();
  }
}

void HubCore::on_connected(Session& session) {
  replica_of(session).status.is_connected = true;
  tell_of(session, "is here");
  if (options_.training.engine.recipe.planner != PlannerKind::kNone &&
      !replica_of(session).status.measured.is_complete())
    send_probe(session, kProbeBytes);
  if (training_) return take_in(session);
  ask_for_state();
}

// A large model needs minutes on a slow link: the log says how far it is.
void HubCore::tell_of_models() {
  for (const auto& [id, session] : sessions_) {
    const auto from = session->lanes.receiving(Cargo::kSnapshot);
    const auto to = session->lanes.sending(Cargo::kSnapshot);
    if (!(from || to) || now_ < session->progress.next_news) continue;
    session->progress.next_news = time_after(now_, kNewsOfModelEvery);
    const TransferProgress progress = from ? *from : *to;
    tell_of(*session, std::string(from ? "sends the first model: " : "is sent the model: ") +
                          to_string(ByteCount{progress.done}) + " of " +
                          to_string(ByteCount{progress.total}));
  }
}

// One that starts afresh sends the initial model; if it goes before it has, another one does.
void HubCore::ask_for_state() {
  if (training_ || failure_ || is_starting_ || !initial_.empty()) return;
  Session* next = nullptr;
  for (const auto& [id, session] : sessions_) {
    if (session->progress.is_asked_for_state) return;
    if (next == nullptr && session->is_connected() && session->progress.is_fresh)
      next = session.get();
  }
  if (next == nullptr) return;
  next->progress.is_asked_for_state = true;
  next->progress.next_news = time_after(now_, kNewsOfModelEvery);
  Frame frame;
  frame.mutable_send_state();
  (void)next->send(std::move(frame));
}

// It goes on from where it stands if the journal reaches back so far, and it knows, or can do
// again, all that is in of it: not if it was given another state after its checkpoint.
bool HubCore::can_go_on(const Session& session) const {
  const Session::Progress& progress = session.progress;
  const Journal& journal = training_->journal();
  if (progress.is_fresh) return journal.end() == RoundId{};  // nothing has closed
  if (!journal.reaches_back_to(progress.next_mean)) return false;
  if (progress.next_mean > training_->book().next()) return false;
  const auto last = training_->last_of(session.identity().slot, progress.next_mean);
  if (last && progress.own_until && last->round >= *progress.own_until) return false;
  return !last || last->attendance.since <= progress.step;
}

void HubCore::take_in(Session& session) {
  Session::Progress& progress = session.progress;
  if (!can_go_on(session)) return bring_in(session);
  progress.is_served = true;
  progress.is_loaded = true;
  tell_last_step(session);
  // Nobody can be further than the model.
  progress.first_step = std::min(progress.first_step, training_->standing().step);
  send_means(session);
}

void HubCore::on_state(Session& session, Arrival arrival) {
  if (!session.progress.is_asked_for_state || training_ || is_starting_ || !initial_.empty())
    return;
  if (arrival.bytes.size() != elements_ * sizeof(float))
    return reject(session, "an initial model of another size");
  if (std::exchange(session.progress.has_sent_state, true)) return;
  run_errand(
      errands_,
      [bytes = std::move(arrival.bytes)]() mutable {
        FirstModel model{.parameters = std::vector<float>(bytes.size() / sizeof(float))};
        std::ranges::copy(bytes, std::as_writable_bytes(std::span(model.parameters)).begin());
        bytes = ByteBuffer();
        return_freed_memory();
        model.digest = digest_of(std::span<const float>(model.parameters));
        return model;
      },
      [this, control = session.control()](FirstModel&& model) {
        on_first_model(control, std::move(model));
      });
}

// Its sender may have gone meanwhile, and the others may have chosen another model.
void HubCore::on_first_model(StreamId control, FirstModel&& model) {
  if (training_ || is_starting_ || !initial_.empty()) return;
  if (model.parameters.size() == elements_ && model.digest == initial_digest_) {
    initial_ = std::move(model.parameters);
    return start_if_ready();
  }
  if (const auto sender = sessions_.find(control); sender != sessions_.end())
    reject(*sender->second, "an initial model with another digest than it told");
}

void HubCore::start_if_ready() {
  if (training_ || failure_ || is_starting_ || initial_.empty()) return;
  const bool is_planned = options_.training.engine.recipe.planner != PlannerKind::kNone;
  Conditions links;
  for (const auto& [id, session] : sessions_) {
    const Measured& measured = replica_of(*session).status.measured;
    if (!session->is_connected()) continue;
    if (is_planned && !(measured.is_complete() && measured.latency.count() > 0)) continue;
    links.push_back(is_planned ? measured.conditions() : ReplicaConditions{});
  }
  if (links.size() < options_.start_with) return;
  TrainingOptions options = options_.training;
  options.engine.layers = *layers_;
  is_starting_ = true;
  run_errand(
      errands_,
      [options = std::move(options), initial = std::exchange(initial_, {}), links,
       &workers = workers_]() mutable {
        return ModelKeeper::start(options, std::move(initial), links, workers);
      },
      [this, replicas = links.size()](Result<std::unique_ptr<ModelKeeper>>&& keeper) {
        on_started(std::move(keeper), replicas);
      });
}

void HubCore::on_started(Result<std::unique_ptr<ModelKeeper>>&& keeper, std::size_t replicas) {
  is_starting_ = false;
  if (failure_ || is_asked_to_finish_) return;
  if (!keeper.ok()) return fail(keeper.error());
  training_ = std::make_unique<Training>(std::move(keeper).value());
  if (options_.training.steps > 0) last_step_ = options_.training.steps - 1;
  const Decision& first = training_->first_decision();
  reason_ = first.reason;
  log_.info("starts with " + std::to_string(replicas) + " replicas: " + reason_);
  if (watcher_) watcher_({.outcome = {.decision = first}, .time = now_, .is_start = true});
  for (const auto& [id, session] : sessions_) {
    if (session->is_connected()) take_in(*session);
  }
}

// Before the means that lead there: with those it could go on beyond.
void HubCore::tell_last_step(Session& session) {
  if (!last_step_ && !is_asked_to_finish_) return;
  Frame frame;
  frame.mutable_finish()->set_last_step(last_step_.value_or(0));
  frame.mutable_finish()->set_cause(finish_cause_);
  (void)session.send(std::move(frame));
}

// Its state is replaced by the hub's. A snapshot that is on its way to another one serves as well,
// if the rounds since are at hand.
void HubCore::bring_in(Session& session) {
  training_->book().leave(session.identity().slot);
  replica_of(session).status.is_enrolled = false;
  is_evaluator_known_ = false;
  session.progress = {.awaits_snapshot = true, .restarts = session.progress.restarts};
  const std::shared_ptr<const Snapshot> snapshot = snapshot_.lock();
  if (snapshot && training_->journal().reaches_back_to(snapshot->next_round))
    return give(session, snapshot);
  make_snapshot();
}

// One for all who wait for it.
void HubCore::make_snapshot() {
  if (std::exchange(is_making_snapshot_, true)) return;
  run_errand(
      errands_,
      [keeper = training_->keeper()] {
        const Follower& model = keeper->model();
        return std::make_shared<const Snapshot>(
            Snapshot{.bytes = to_rope(std::make_shared<const State>(model.save())),
                     .next_round = model.next_round(),
                     .first_step = model.step()});
      },
      [this](const std::shared_ptr<const Snapshot>& snapshot) {
        is_making_snapshot_ = false;
        if (!training_) return;
        snapshot_ = snapshot;
        for (const auto& [id, session] : sessions_) {
          if (session->progress.awaits_snapshot) give(*session, snapshot);
        }
      });
}

void HubCore::give(Session& session, const std::shared_ptr<const Snapshot>& snapshot) {
  session.progress = {.is_served = true,
                      .next_news = time_after(now_, kNewsOfModelEvery),
                      .next_mean = snapshot->next_round,
                      .first_step = snapshot->first_step,
                      .restarts = session.progress.restarts + 1};
  Frame frame;
  frame.mutable_restart()->set_bytes(snapshot->bytes.size());
  *frame.mutable_restart()->mutable_next_round() = to_message(snapshot->next_round);
  frame.mutable_restart()->set_first_step(snapshot->first_step);
  (void)session.send(std::move(frame));
  tell_last_step(session);
  ByteRope bytes = snapshot->bytes;
  bytes.append({}, snapshot);  // it is there while a lane needs it
  session.lanes.send({.cargo = Cargo::kSnapshot, .restarts = session.progress.restarts},
                     std::move(bytes));
  send_means(session);
}

// When it has all means and its state, rounds may wait for it again.
void HubCore::enroll_if_caught_up(Session& session) {
  RoundBook& book = training_->book();
  Session::Progress& progress = session.progress;
  if (progress.is_enrolled || !progress.is_loaded) return;
  if (training_->journal().first_from(progress.next_mean) != nullptr) return;
  const RoundId from = std::max(book.next(), RoundId{.step = progress.first_step});
  progress.is_enrolled = true;
  is_evaluator_known_ = false;
  Replica& replica = replica_of(session);
  replica.status.is_enrolled = true;
  book.join(session.identity().slot, replica.weight, from);
  Frame frame;
  *frame.mutable_enrolled()->mutable_from() = to_message(from);
  *frame.mutable_enrolled()->mutable_plan() = to_message(training_->first_decision().plan);
  (void)session.send(std::move(frame));
}

}  // namespace longhaul
