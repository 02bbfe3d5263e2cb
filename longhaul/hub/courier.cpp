#include "longhaul/hub/courier.h"

#include <algorithm>
#include <utility>

#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::uint64_t kMostMeansOnTheWay = 4;

// Bytes for this replica if payloads are forwarded: all but its own.
std::size_t bytes_for(std::size_t slot, const ClosingRound& sent) {
  std::size_t bytes = 0;
  for (const Contribution& one : sent.members) bytes += one.slot == slot ? 0 : one.payload.size();
  return bytes;
}

}  // namespace

// It goes on from where it stands if the journal reaches back so far, and it knows, or can do
// again, all that is in of it: not if it was given another state after its checkpoint.
bool Courier::can_go_on(const Peer& peer) const {
  const Peer::Progress& progress = peer.progress;
  const Journal& journal = training_->journal();
  if (progress.is_fresh) return journal.end() == RoundId{};  // nothing has closed
  if (!journal.reaches_back_to(progress.next_mean)) return false;
  if (progress.next_mean > training_->book().next()) return false;
  const auto last = training_->last_of(peer.slot(), progress.next_mean);
  if (last && progress.own_until && last->round >= *progress.own_until) return false;
  return !last || last->attendance.since <= progress.step;
}

void Courier::take_in(Peer& peer) {
  Peer::Progress& progress = peer.progress;
  if (!can_go_on(peer)) return bring_in(peer);
  progress.is_served = true;
  progress.is_loaded = true;
  end_.tell(peer);
  // Nobody can be further than the model.
  progress.first_step = std::min(progress.first_step, training_->standing().step);
  send_means(peer);
}

// Its state is replaced by the hub's. A snapshot that is on its way to another one serves as well,
// if the rounds since are at hand.
void Courier::bring_in(Peer& peer) {
  training_->book().leave(peer.slot());
  roster_.withdraw(peer);
  peer.progress = {.awaits_snapshot = true, .restarts = peer.progress.restarts};
  const std::shared_ptr<const ByteRope> snapshot = snapshot_.lock();
  if (snapshot && training_->journal().reaches_back_to(round_from(restart_.next_round())))
    return give(peer, snapshot);
  make_snapshot();
}

// One for all who wait for it.
void Courier::make_snapshot() {
  if (std::exchange(is_making_snapshot_, true)) return;
  run_errand(
      errands_,
      [keeper = training_->keeper()] {
        const Follower& model = keeper->model();
        auto snapshot =
            std::make_shared<const ByteRope>(to_rope(std::make_shared<const State>(model.save())));
        v1::Restart restart;
        restart.set_bytes(snapshot->size());
        *restart.mutable_next_round() = to_message(model.next_round());
        restart.set_first_step(model.step());
        return std::pair(std::move(snapshot), std::move(restart));
      },
      [this](auto made) {
        is_making_snapshot_ = false;
        if (!training_) return;
        auto& [snapshot, restart] = made;
        snapshot_ = snapshot;
        restart_ = std::move(restart);
        for (const auto& [control, peer] : roster_.peers()) {
          if (peer->progress.awaits_snapshot) give(*peer, snapshot);
        }
      });
}

void Courier::give(Peer& peer, const std::shared_ptr<const ByteRope>& snapshot) {
  peer.progress = {.is_served = true,
                   .next_news = time_after(now_, kNewsOfModelEvery),
                   .next_mean = round_from(restart_.next_round()),
                   .first_step = restart_.first_step(),
                   .restarts = peer.progress.restarts + 1};
  Frame frame;
  *frame.mutable_restart() = restart_;
  (void)peer.send(std::move(frame));
  end_.tell(peer);
  ByteRope bytes = *snapshot;
  bytes.append({}, snapshot);  // it is there while a lane needs it
  peer.lanes.send({.cargo = Cargo::kSnapshot, .restarts = peer.progress.restarts},
                  std::move(bytes));
  send_means(peer);
}

void Courier::on_loaded(Peer& peer) {
  peer.progress.is_loaded = true;
  enroll_if_caught_up(peer);
}

void Courier::send_means(Peer& peer) {
  if (!training_ || !peer.progress.is_served) return;
  const Journal& journal = training_->journal();
  RoundId& next = peer.progress.next_mean;
  // It was slower than the journal forgets.
  if (!journal.reaches_back_to(next)) {
    if (peer.lanes.waiting() == 0) bring_in(peer);
    return;
  }
  while (peer.lanes.waiting() < kMostMeansOnTheWay) {
    const JournalRound* round = journal.first_from(next);
    if (round == nullptr) break;
    send_mean(peer, *round);
    next = after(round->id);
  }
  enroll_if_caught_up(peer);
}

// As the payloads of the others where that is smaller, and possible: the replica adds its own.
void Courier::send_mean(Peer& peer, const JournalRound& round) {
  const std::size_t slot = peer.slot();
  Frame frame;
  v1::Closed& closed = *frame.mutable_closed();
  closed.set_step(round.id.step);
  closed.set_part(round.id.part);
  closed.set_elements(round.elements);
  const Contributor* own = round.contributor(slot);
  if (own != nullptr) closed.set_own(own->digest);
  const auto at_hand = peer.progress.own.find(round.id);
  const bool can_add_own =
      own != nullptr && at_hand != peer.progress.own.end() && at_hand->second == own->digest;
  peer.progress.own.erase(peer.progress.own.begin(), peer.progress.own.upper_bound(round.id));
  if (round.next_plan) *closed.mutable_next_plan() = to_message(*round.next_plan);
  ByteRope bytes = round.mean.bytes();
  closed.set_way(v1::WAY_UNION);
  if (const ClosingRound* sent = can_add_own ? training_->sent(round.id) : nullptr;
      sent != nullptr && bytes_for(slot, *sent) < bytes.size()) {
    ByteRope others;
    closed.set_way(v1::WAY_FORWARDED);
    float members = 0.0F;
    for (const Contribution& one : sent->members) members += one.weight;
    for (const Contribution& one : sent->members) {
      if (one.payload.empty()) continue;
      if (one.slot != slot) others.append(one.payload.bytes());
      v1::Contribution& told = *closed.add_contributions();
      told.set_slot(static_cast<std::uint32_t>(one.slot));
      told.set_weight(one.weight / members);
      told.set_bytes(one.payload.size());
    }
    bytes = std::move(others);
  }
  closed.set_bytes(bytes.size());
  roster_.of(peer).bytes_down += bytes.size();
  (void)peer.send(std::move(frame));
  peer.lanes.send({.cargo = Cargo::kMean,
                   .step = round.id.step,
                   .part = round.id.part,
                   .restarts = peer.progress.restarts},
                  std::move(bytes));
}

// When it has all means and its state, rounds may wait for it again.
void Courier::enroll_if_caught_up(Peer& peer) {
  RoundBook& book = training_->book();
  Peer::Progress& progress = peer.progress;
  if (progress.is_enrolled || !progress.is_loaded) return;
  if (training_->journal().first_from(progress.next_mean) != nullptr) return;
  const RoundId from = std::max(book.next(), RoundId{.step = progress.first_step});
  roster_.enroll(peer);
  book.join(peer.slot(), roster_.of(peer).weight, from);
  Frame frame;
  *frame.mutable_enrolled()->mutable_from() = to_message(from);
  *frame.mutable_enrolled()->mutable_plan() = to_message(training_->first_decision().plan);
  (void)peer.send(std::move(frame));
}

}  // namespace longhaul
