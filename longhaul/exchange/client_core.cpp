#include "longhaul/exchange/client_core.h"

#include <algorithm>
#include <utility>

#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr Seconds kFirstBackOff{0.1};
constexpr Seconds kMostBackOff{5.0};
constexpr Seconds kPingEvery{1.0};
constexpr double kPingsInASilence = 4;  // more of them, if a short silence is the end
constexpr std::size_t kMostTransfers = 4096;
constexpr std::size_t kStateOverhead = 1 << 20;
constexpr std::size_t kMostWaiting = 16;  // transfers before a probe

constexpr std::size_t kMostStateTensors = 16;  // two of an optimizer, and anchors of rounds

CargoOptions limits_of(std::size_t elements) {
  return {.most_bytes = kMostStateTensors * elements * sizeof(float) + kStateOverhead,
          .most_transfers = kMostTransfers};
}

Result<std::optional<Contribution>> contributed_from(const v1::Welcome& welcome) {
  if (!welcome.has_contributed()) return std::optional<Contribution>();
  const RoundId round = round_from(welcome.contributed().round());
  Result<Attendance> attendance = attendance_from(welcome.contributed().attendance(), round.step);
  if (!attendance.ok()) return attendance.error();
  return std::optional(Contribution{.round = round, .attendance = std::move(attendance).value()});
}

}  // namespace

ClientCore::ClientCore(ClientOptions options, Connector& connector, StreamInbox inbox,
                       Errands& errands, ClientNews& news)
    : options_(std::move(options)),
      connector_(connector),
      inbox_(std::move(inbox)),
      errands_(errands),
      news_(news),
      initial_digest_(options_.initial ? digest_of(*options_.initial) : 0),
      kept_(std::move(options_.own)),
      first_step_(options_.first_step),
      step_(options_.step),
      next_mean_(options_.next_round),
      jitter_(digest_of(std::as_bytes(std::span(options_.name)))) {}

ClientCore::~ClientCore() = default;

Error ClientCore::broken(const std::string& what) {
  return Error{ErrorCode::kCorruptPayload, "hub: " + what};
}

StreamId ClientCore::open_stream(StreamPtr& stream) {
  const StreamId id = next_stream_++;
  stream = connector_.open(listener_of(id, inbox_));
  return id;
}

void ClientCore::connect(TimePoint now) {
  connection_ = std::make_unique<Connection>(limits_of(options_.elements), options_.rate);
  connection_->lanes.set_reading(is_reading_);
  connection_->last_heard = now;
  connection_->next_ping = now;
  round_trips_.clear();
  connection_->control_id = open_stream(connection_->control);
  Frame frame;
  v1::Join& join = *frame.mutable_join();
  join.set_protocol(kProtocolVersion);
  join.set_wire(kWireVersion);
  join.set_name(options_.name);
  join.set_token(options_.token);
  join.set_elements(options_.elements);
  *join.mutable_layers() = to_message(options_.layers);
  join.set_lanes(static_cast<std::uint32_t>(options_.lanes));
  connection_->joined_lanes = options_.lanes;
  if (options_.slot) join.set_slot(*options_.slot);
  join.set_compute_s(options_.compute.count());
  join.set_is_fresh(options_.is_fresh);
  if (!options_.is_fresh) join.set_run(options_.run);
  if (options_.initial) join.set_initial(initial_digest_);
  *join.mutable_next_round() = to_message(next_mean_);
  if (options_.own_until) *join.mutable_own_until() = to_message(*options_.own_until);
  join.set_session(session_);
  join.set_first_step(first_step_);
  join.set_step(step_);
  send(std::move(frame));
  connection_->control->read();
}

// Streams that are closed may still tell of it: their ids are not known any more.
void ClientCore::disconnect() {
  for (const auto& [id, stream] : connection_->opening) stream->close();
  connection_->lanes.close();
  connection_->control->close();
  connection_.reset();
}

void ClientCore::lose(const Error& why, TimePoint now) {
  if (!connection_) return;
  if (connection_->has_said_goodbye) {
    disconnect();
    has_ended_ = true;
    return news_.on_left();
  }
  disconnect();
  ++reconnections_;
  back_off_ = std::clamp(back_off_ * 2, kFirstBackOff, kMostBackOff);
  const double share = 0.5 + 0.5 * static_cast<double>(jitter_() % 1000) / 1000;
  next_try_ = time_after(now, back_off_ * share);
  news_.on_lost(why);
}

void ClientCore::give_up(const Error& why) {
  has_ended_ = true;
  if (connection_) disconnect();
  news_.on_failed(why);
}

void ClientCore::on_errand(const Errands::End& end, TimePoint now) {
  now_ = now;
  end();
}

void ClientCore::on_tick(TimePoint now) {
  now_ = now;
  if (has_ended_) return;
  if (!connection_) {
    if (now >= next_try_) connect(now);
    return;
  }
  connection_->lanes.on_tick(now);
  if (now - connection_->last_heard > options_.silence)
    return lose({ErrorCode::kDeadline, "the hub is silent"}, now);
  if (!connection_->is_welcome || now < connection_->next_ping) return;
  connection_->next_ping =
      time_after(now, std::min(kPingEvery, options_.silence / kPingsInASilence));
  if (connection_->ping) return;  // the last one is still on its way
  connection_->ping = {next_ping_id_++, now};
  Frame frame;
  frame.mutable_ping()->set_id(connection_->ping->first);
  send(std::move(frame));
}

void ClientCore::send(Frame frame) {
  if (connection_->is_writing) {
    connection_->outgoing.push_back(std::move(frame));
    return;
  }
  connection_->is_writing = true;
  connection_->control->write(std::move(frame));
}

void ClientCore::on_event(StreamEvent event, TimePoint now) {
  now_ = now;
  if (!connection_) return;
  Connection& c = *connection_;
  const StreamId id = event.stream;
  if (id != c.control_id && !c.opening.contains(id) && !c.lanes.has(id)) return;  // of an old one
  if (auto* arrived = std::get_if<FrameArrived>(&event.what)) {
    c.last_heard = now;
    on_frame(id, std::move(*arrived), now);
  } else if (std::holds_alternative<FrameWritten>(event.what)) {
    on_written(id);
  } else if (auto* closed = std::get_if<StreamClosed>(&event.what)) {
    on_closed(id, *closed, now);
  }
}

// A lane that breaks takes chunks with it; one that was to come beside the others and cannot takes
// nothing, and no more are tried.
void ClientCore::on_closed(StreamId id, const Error& why, TimePoint now) {
  Connection& c = *connection_;
  if (!c.opening.contains(id) || c.lanes.count() < c.joined_lanes) return lose(why, now);
  c.opening.erase(id);
  options_.most_lanes = --options_.lanes;
}

void ClientCore::on_written(StreamId id) {
  Connection& c = *connection_;
  if (id == c.control_id) {
    c.is_writing = false;
    if (c.outgoing.empty()) return;
    Frame next = std::move(c.outgoing.front());
    c.outgoing.pop_front();
    return send(std::move(next));
  }
  if (const auto opening = c.opening.find(id); opening != c.opening.end()) {
    c.lanes.add(id, std::move(opening->second));
    c.opening.erase(opening);
    return;
  }
  c.lanes.on_written(id);
}

void ClientCore::on_frame(StreamId id, Frame frame, TimePoint now) {
  if (id != connection_->control_id) {
    if (!frame.has_chunk()) return lose(broken("not a chunk on a lane"), now);
    Result<std::optional<Arrival>> arrival =
        connection_->lanes.on_chunk(id, *frame.mutable_chunk(), now);
    if (!arrival.ok()) return lose(arrival.error(), now);
    if (arrival->has_value()) on_arrival(std::move(**arrival));
    return;
  }
  on_control(std::move(frame), now);
  if (connection_) connection_->control->read();
}

void ClientCore::on_control(Frame frame, TimePoint now) {
  Connection& c = *connection_;
  if (frame.has_welcome()) {
    on_welcome(frame.welcome(), now);
  } else if (frame.has_refused()) {
    const Error why{ErrorCode::kClosed, "the hub refused: " + frame.refused().why()};
    frame.refused().is_final() ? give_up(why) : lose(why, now);
  } else if (frame.has_pong()) {
    if (!c.ping || c.ping->first != frame.pong().id()) return;
    const Seconds took = now - c.ping->second;
    c.ping.reset();
    const bool is_first = !round_trips_.least();
    round_trips_.add(now, took);
    news_.on_round_trip(took);
    if (is_first) report({});
    add_lanes({.bytes_per_second = frame.pong().up_bytes_per_s()});
  } else if (frame.has_closed()) {
    const RoundId round{.step = frame.closed().step(), .part = frame.closed().part()};
    if (round < c.announced_until) return lose(broken("rounds that do not close in order"), now);
    c.announced_until = after(round);
    c.closed[round] = std::move(*frame.mutable_closed());
    assemble(round);
  } else if (frame.has_send_state() && options_.initial) {
    c.lanes.send({.cargo = Cargo::kSnapshot}, options_.initial);
  } else if (frame.has_send_probe()) {
    send_probe(frame.send_probe().bytes());
  } else if (frame.has_restart()) {
    on_restart(std::move(*frame.mutable_restart()));
  } else if (frame.has_enrolled()) {
    on_enrolled(frame.enrolled());
  } else if (frame.has_finish()) {
    news_.on_finish(frame.finish().last_step(), frame.finish().cause());
  } else if (frame.has_evaluate()) {
    news_.on_evaluate(frame.evaluate().is_on());
  } else if (frame.has_evaluation()) {
    news_.on_evaluation(frame.evaluation());
  } else if (frame.has_goodbye()) {
    const Error why{ErrorCode::kClosed, "the hub says goodbye: " + frame.goodbye().why()};
    frame.goodbye().is_over() ? give_up(why) : lose(why, now);
  }
}

void ClientCore::on_welcome(const v1::Welcome& welcome, TimePoint now) {
  Result<std::optional<Contribution>> contributed = contributed_from(welcome);
  if (!contributed.ok()) return lose(broken(contributed.error().message), now);
  Connection& c = *connection_;
  c.is_welcome = true;
  session_ = welcome.session();
  options_.run = welcome.run();
  slot_ = welcome.slot();
  if (untold_) tell(*std::exchange(untold_, std::nullopt));
  if (is_leaving_) return leave();
  options_.slot = welcome.slot();  // to be the same one for a hub that was killed and knows nobody
  news_.on_welcome(slot_, welcome.run(), std::move(contributed).value());
  for (std::size_t i = 0; i < options_.lanes; ++i) open_lane();
  if (welcome.probe()) send_probe(kProbeBytes);
}

// However many a hub asks for, they do not pile up.
void ClientCore::send_probe(std::uint64_t bytes) {
  if (connection_->lanes.waiting() > kMostWaiting) return;
  connection_->lanes.send(
      {.cargo = Cargo::kProbe, .step = probes_++},
      std::make_shared<const ByteBuffer>(std::min<std::uint64_t>(bytes, kMostIdleProbeBytes),
                                         std::byte{0xAA}));
}

void ClientCore::open_lane() {
  StreamPtr stream;
  const StreamId id = open_stream(stream);
  Frame frame;
  frame.mutable_open_lane()->set_session(session_);
  StreamPtr& kept = connection_->opening[id] = std::move(stream);
  kept->write(std::move(frame));
}

// Never fewer: a path that was fast will be again.
void ClientCore::add_lanes(Bandwidth up) {
  Connection& c = *connection_;
  if (c.lanes.count() < c.joined_lanes || !c.opening.empty()) return;
  const std::size_t wanted = lanes_for(
      std::ranges::max(up, down_.typical().value_or(Bandwidth{}), {}, &Bandwidth::bytes_per_second),
      *round_trips_.least(), static_cast<double>(largest_transfer_));
  for (; options_.lanes < std::min(wanted, options_.most_lanes); ++options_.lanes) open_lane();
}

// Nothing of this replica changes before the snapshot is here: the connection may break.
void ClientCore::on_restart(v1::Restart restart) {
  Connection& c = *connection_;
  c.restart = std::move(restart);
  c.is_snapshot_here = false;
  ++c.restarts;
  c.closed.clear();
  c.announced_until = {};
  c.arrived.clear();
  for (Arrival& arrival : std::exchange(c.early, {})) {
    if (connection_) on_cargo(std::move(arrival));
  }
}

void ClientCore::on_enrolled(const v1::Enrolled& enrolled) {
  const Result<Plan> plan = plan_from(enrolled.plan());
  if (!plan.ok()) return give_up(plan.error());
  connection_->is_enrolled = true;
  back_off_ = Seconds(0);
  options_.is_fresh = false;
  options_.initial.reset();
  options_.own_until.reset();  // what comes from now on is of this process
  const RoundId from = round_from(enrolled.from());
  for (const auto& [round, update] : kept_) {
    if (round >= from) send_update(update);
  }
  news_.on_enrolled(from, *plan);
}

void ClientCore::set_reading(bool is_reading) {
  is_reading_ = is_reading;
  if (connection_) read_as_told();
}

bool ClientCore::has_mean(RoundId round) const {
  return round < next_mean_ || means_beyond_.contains(round);
}

void ClientCore::submit(const Update& update) {
  const RoundId round = update.round;
  step_ = std::max(step_, round.step + 1);
  if (has_mean(round)) return;
  kept_[round] = update;
  if (connection_ && connection_->is_enrolled) send_update(update);
}

void ClientCore::send_update(const Update& update) {
  largest_transfer_ = std::max(largest_transfer_, update.payload.size());
  connection_->lanes.send({.cargo = Cargo::kUpdate,
                           .step = update.round.step,
                           .part = update.round.part,
                           .restarts = connection_->restarted},
                          update.payload.bytes(), to_message(update.attendance));
}

void ClientCore::report(v1::Report report) {
  if (!connection_ || !connection_->is_welcome) return;
  *report.mutable_down() = std::move(*unreported_.mutable_down());
  unreported_.clear_down();
  report.set_restarts(connection_->restarted);
  report.set_probes(connection_->probes);
  if (const auto least = round_trips_.least()) report.set_round_trip_s(least->count());
  Frame frame;
  *frame.mutable_report() = std::move(report);
  send(std::move(frame));
}

void ClientCore::tell(const v1::Evaluation& evaluation) {
  if (!connection_ || !connection_->is_welcome) {
    untold_ = evaluation;
    return;
  }
  Frame frame;
  *frame.mutable_evaluation() = evaluation;
  send(std::move(frame));
}

void ClientCore::leave() {
  is_leaving_ = true;
  if (!connection_ || !connection_->is_welcome) return;  // said when it is
  connection_->has_said_goodbye = true;
  Frame frame;
  frame.mutable_leave();
  send(std::move(frame));
}

}  // namespace longhaul
