#include "longhaul/hub/front_desk.h"

#include <algorithm>
#include <memory>

#include "longhaul/access/names.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::uint32_t kMostLanes = 64;
constexpr std::size_t kMostNewcomers = 512;
constexpr std::size_t kMostGuests = 8;
constexpr Seconds kSurelyAlive{1.0};  // what was on its way has come by then

Error refusal(const std::string& why) { return Error{ErrorCode::kMismatch, why}; }

Error other_version(std::uint32_t theirs) {
  return refusal("this hub speaks protocol " + std::to_string(kProtocolVersion) +
                 ", the replica protocol " + std::to_string(theirs));
}

// It will not help to try again. Else the hub may be able to let it in later.
bool is_final(const Error& why) {
  return why.code == ErrorCode::kMismatch || why.code == ErrorCode::kInvalidArgument;
}

Status check_form(const v1::Join& join) {
  if (join.wire() != kWireVersion)
    return refusal("this hub knows payloads of version " + std::to_string(kWireVersion) +
                   ", the replica sends version " + std::to_string(join.wire()));
  if (join.lanes() < 1 || join.lanes() > kMostLanes)
    return refusal("a number of lanes out of range");
  return Done{};
}

}  // namespace

// Those who have not said who they are yet cost memory: there are not too many of them.
void FrontDesk::on_opened(StreamId id, StreamPtr stream) {
  if (newcomers_.size() >= kMostNewcomers)
    return turn_away(id, "a connection: too many that have not said who they are");
  stream->read();
  newcomers_[id] = {.stream = std::move(stream), .since = now_};
}

void FrontDesk::on_closed(StreamId id) {
  newcomers_.erase(id);
  guests_.erase(id);
}

bool FrontDesk::on_written(StreamId id) {
  const auto guest = guests_.find(id);
  if (guest == guests_.end()) return false;
  guest->second.on_written(now_);
  return true;
}

void FrontDesk::end_silent(Seconds silence) {
  const auto is_silent = [&](TimePoint since) { return now_ - since > silence; };
  std::erase_if(newcomers_, [&](const auto& entry) { return is_silent(entry.second.since); });
  std::erase_if(guests_, [&](const auto& guest) { return is_silent(guest.second.last_moved()); });
}

void FrontDesk::turn_away(StreamId id, const std::string& why) {
  ++refused_;
  log_.warn("refused " + why, now_);
  newcomers_.erase(id);  // closes it
}

void FrontDesk::refuse(StreamId id, const std::string& who, const Error& why) {
  ++refused_;
  log_.warn("refused " + who + ": " + why.message, now_);
  Frame frame;
  frame.mutable_refused()->set_why(why.message);
  frame.mutable_refused()->set_is_final(is_final(why));
  answer(id, std::move(frame));
}

// The stream goes when it is dropped, which waits for the frame to be written.
void FrontDesk::answer(StreamId id, Frame frame) {
  newcomers_.at(id).stream->write(std::move(frame));
}

bool FrontDesk::admits(StreamId id, std::uint32_t protocol, const std::string& name,
                       const std::string& token) {
  if (const Status named = access::check_name(name); !named.ok()) {
    refuse(id, "a replica", named.error());
    return false;
  }
  Status admitted = Done{};
  if (protocol != kProtocolVersion) {
    admitted = other_version(protocol);
  } else if (admit_) {
    admitted = admit_(name, token, newcomers_.at(id).stream->peer_name());
  }
  if (!admitted.ok()) refuse(id, name, admitted.error());
  return admitted.ok();
}

// While the hub stops, only those come in whose updates the others wait for.
Result<std::size_t> FrontDesk::slot_for(const v1::Join& join, const RunEnd& end,
                                        const Training* training) const {
  if (closed_) return Error{ErrorCode::kClosed, closed_->message};
  const auto known = roster_.replicas().find(join.name());
  const bool is_known = known != roster_.replicas().end();
  const bool is_over = training != nullptr && end.is_past(training->book().next());
  if (end.is_stopping()) {
    const bool is_awaited = training != nullptr && !is_over && is_known && !known->second.has_left;
    if (!is_awaited) return Error{ErrorCode::kClosed, "the hub is stopping; come back later"};
  } else if (is_over && !is_known) {
    return refusal("this run is done");
  }
  LONGHAUL_TRY(check_form(join));
  LONGHAUL_TRY(model_.check(join, roster_.run().id));
  return roster_.slot_for(join);
}

// After a crash it may be the old connection of the one that wants in: that one is silent, and goes
// soon. One that is heard of is another replica.
Error FrontDesk::name_taken(const Peer& earlier) {
  std::optional<TimePoint>& since = roster_.of(earlier).doubled_since;
  if (!since) since = now_;
  const Seconds alive = earlier.last_heard() - *since;
  if (alive < kSurelyAlive) return {ErrorCode::kClosed, "a replica of this name is here already"};
  return refusal("another replica of this name is here; every replica needs a name of its own");
}

std::optional<std::size_t> FrontDesk::place_for(StreamId id, const v1::Join& join,
                                                const RunEnd& end, const Training* training) {
  if (!admits(id, join.protocol(), join.name(), join.token())) return std::nullopt;
  Result<std::size_t> slot = slot_for(join, end, training);
  const Peer* earlier = roster_.peer_of(join.name());
  if (slot.ok() && earlier != nullptr && join.session() != earlier->id())
    slot = name_taken(*earlier);
  if (slot.ok()) return *slot;
  refuse(id, join.name(), slot.error());
  return std::nullopt;
}

void FrontDesk::seat(StreamId id, const v1::Join& join, std::size_t slot, Lanes lanes,
                     const Training* training) {
  model_.agree(join);
  Peer& peer = roster_.add(std::make_unique<Peer>(
      join, slot, id, std::move(newcomers_.extract(id).mapped().stream), std::move(lanes)));
  peer.heard(now_);
  links_.begin(peer.name(), join.compute_s());
  Frame frame;
  v1::Welcome& welcome = *frame.mutable_welcome();
  welcome.set_session(peer.id());
  welcome.set_run(roster_.run().id);
  welcome.set_slot(static_cast<std::uint32_t>(slot));
  welcome.set_replicas(static_cast<std::uint32_t>(roster_.slots()));
  welcome.set_probe(links_.wants_first_probe(peer.name()));
  if (training != nullptr && !join.is_fresh()) {
    if (const auto last = training->last_of(slot, round_from(join.next_round()))) {
      *welcome.mutable_contributed()->mutable_round() = to_message(last->round);
      *welcome.mutable_contributed()->mutable_attendance() = to_message(last->attendance);
    }
  }
  (void)peer.send(std::move(frame));
  peer.read_control();
}

Peer* FrontDesk::seat_lane(StreamId id, const v1::OpenLane& lane) {
  const auto owner = std::ranges::find_if(
      roster_.peers(), [&](const auto& entry) { return entry.second->id() == lane.session(); });
  if (owner == roster_.peers().end() || owner->second->lanes.count() >= kMostLanes) {
    turn_away(id, "a lane: of no session that is open");
    return nullptr;
  }
  Peer& peer = *owner->second;
  peer.heard(now_);
  roster_.add_lane(peer, id, std::move(newcomers_.extract(id).mapped().stream));
  return &peer;
}

void FrontDesk::seat_guest(StreamId id, const v1::OpenProbe& open) {
  if (!admits(id, open.protocol(), open.name(), open.token())) return;
  if (guests_.size() >= kMostGuests)
    return refuse(id, open.name(), {ErrorCode::kClosed, "others measure their links right now"});
  guests_.try_emplace(id, std::move(newcomers_.extract(id).mapped().stream), now_);
}

void FrontDesk::on_guest(StreamId id, const Frame& frame) {
  const auto guest = guests_.find(id);
  if (guest == guests_.end()) return;
  const Status taken = guest->second.on_frame(frame, now_);
  if (taken.ok()) return;
  ++rejected_;
  log_.warn("rejected: " + taken.error().message, now_);
  guests_.erase(guest);
}

}  // namespace longhaul
