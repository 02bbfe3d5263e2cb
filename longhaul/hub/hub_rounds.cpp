// Updates in, means out: what a round takes, when it closes, and how its mean travels.
#include <algorithm>
#include <utility>

#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/hub/hub_core.h"

namespace longhaul {
namespace {

constexpr std::uint64_t kMostMeansOnTheWay = 4;
constexpr std::size_t kMostUnchecked = 4;  // updates of a replica; then its lanes are not read

// Adding a payload costs O(rank) per element, so ranks above the recipe's are rejected.
Result<CheckedPayload> check_update(ByteBuffer bytes, std::size_t elements,
                                    const CodecOptions& codec) {
  Result<CheckedPayload> update = CheckedPayload::check_update(std::move(bytes), elements);
  if (!update.ok() || update->empty()) return update;
  const LowRankBody* factors = update->view().low_rank();
  if (factors == nullptr) return update;
  const bool is_asked_for =
      codec.kind == CodecKind::kLowRank || codec.kind == CodecKind::kSharedLowRank;
  const std::uint32_t most = is_asked_for ? codec.rank : 0;
  if (std::ranges::all_of(factors->blocks, [&](const auto& block) { return block.rank <= most; }))
    return update;
  return corrupt_payload("low rank: a rank that its recipe does not have");
}

// What goes to this replica if payloads are forwarded: all but its own.
std::size_t bytes_for(std::size_t slot, const ClosingRound& sent) {
  std::size_t bytes = 0;
  for (const Entry& one : sent.members) bytes += one.slot == slot ? 0 : one.payload.size();
  return bytes;
}

}  // namespace

void HubCore::on_update(Session& session, Arrival arrival, TimePoint now) {
  if (!training_) return;
  if (arrival.id.restarts != session.progress.restarts) {  // of a state that is gone
    ++replica_of(session).status.returned;
    return;
  }
  const RoundId round{.step = arrival.id.step, .part = arrival.id.part};
  Result<Attendance> attendance = attendance_from(arrival.attendance, round.step);
  if (!attendance.ok()) return reject(session, attendance.error().message);
  if (round.part >= training_->part_elements().size())
    return reject(session, "an update of a part that the model does not have");
  const bool is_late = round < training_->book().next();
  if (!is_late && !training_->open_round(round))
    return reject(session, "an update of a step and part without a round");
  session.lanes.set_reading(++session.unchecked < kMostUnchecked);
  Submission submission{.control = session.control(),
                        .restarts = arrival.id.restarts,
                        .round = round,
                        .attendance = std::move(attendance).value(),
                        .at = now};
  run_errand(
      errands_,
      [bytes = std::move(arrival.bytes), elements = training_->part_elements()[round.part],
       codec = options_.training.engine.recipe.codec]() mutable {
        return check_update(std::move(bytes), elements, codec);
      },
      [this, submission = std::move(submission)](Result<CheckedPayload>&& update) mutable {
        on_checked(std::move(submission), std::move(update));
      });
}

// A replica that has gone meanwhile submits again.
void HubCore::on_checked(Submission submission, Result<CheckedPayload>&& update) {
  const auto found = sessions_.find(submission.control);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  session.lanes.set_reading(--session.unchecked < kMostUnchecked);
  if (!training_) return;
  Replica& replica = replica_of(session);
  const std::size_t slot = session.identity().slot;
  const RoundId round = submission.round;
  if (submission.restarts != session.progress.restarts) {  // its state was replaced meanwhile
    ++replica.status.returned;
    return;
  }
  if (!update.ok()) {
    // Nothing of it is merged, and nobody waits for it: it is as if it had sent nothing.
    warn("replica " + session.identity().name + ": rejected: " + update.error().message);
    ++replica.status.returned;
    ++replica.status.rejected;
    ++rejected_;
    (void)training_->book().reject(slot, round, submission.at);
    return;
  }
  if (round >= session.progress.next_mean) session.progress.own[round] = update->digest();
  const Taken taken = training_->book().submit(slot, round, std::move(update).value(),
                                               submission.at, std::move(submission.attendance));
  if (taken == Taken::kTooLate || taken == Taken::kNotMember) ++replica.status.returned;
}

// One at a time: the round that is next is known when the one before it has closed.
void HubCore::close_rounds() {
  while (training_ && !training_->is_closing()) {
    const std::optional<TimePoint> at = training_->book().closes_at();
    if (!at || *at > now_) return;
    const Conditions replicas = conditions();
    run_errand(
        errands_,
        [keeper = training_->keeper(), closing = training_->begin_closing(), replicas] {
          return keeper->close(closing, replicas);
        },
        [this, replicas](Result<ModelKeeper::Closed>&& closed) {
          on_round_closed(std::move(closed), replicas);
        });
  }
}

// It is in the journal: replicas are told.
void HubCore::on_round_closed(Result<ModelKeeper::Closed>&& closed, const Conditions& replicas) {
  if (!training_) return;  // the hub has failed
  if (!closed.ok()) return fail(closed.error());
  const RoundOutcome outcome = training_->end_closing(std::move(closed).value());
  measure(outcome, replicas);
  if (outcome.decision) reason_ = outcome.decision->reason;
  for (const auto& [id, session] : sessions_) send_means(*session);
  if (watcher_) watcher_({.outcome = outcome, .time = now_});
  if (pending_finish_) finish(*std::exchange(pending_finish_, std::nullopt));
}

void HubCore::send_means(Session& session) {
  if (!training_ || !session.progress.is_served) return;
  const Journal& journal = training_->journal();
  RoundId& next = session.progress.next_mean;
  // It was slower than the journal forgets.
  if (!journal.reaches_back_to(next)) {
    if (session.lanes.waiting() == 0) bring_in(session);
    return;
  }
  while (session.lanes.waiting() < kMostMeansOnTheWay) {
    const JournalRound* round = journal.first_from(next);
    if (round == nullptr) break;
    send_mean(session, *round);
    next = after(round->id);
  }
  enroll_if_caught_up(session);
}

// As the payloads of the others where that is smaller, and possible: the replica adds its own.
void HubCore::send_mean(Session& session, const JournalRound& round) {
  const std::size_t slot = session.identity().slot;
  Frame frame;
  v1::Closed& closed = *frame.mutable_closed();
  closed.set_step(round.id.step);
  closed.set_part(round.id.part);
  closed.set_elements(round.elements);
  const Contributor* own = round.contributor(slot);
  if (own != nullptr) closed.set_own(own->digest);
  const auto at_hand = session.progress.own.find(round.id);
  const bool can_add_own =
      own != nullptr && at_hand != session.progress.own.end() && at_hand->second == own->digest;
  session.progress.own.erase(session.progress.own.begin(),
                             session.progress.own.upper_bound(round.id));
  if (round.next_plan) *closed.mutable_next_plan() = to_message(*round.next_plan);
  ByteRope bytes = round.mean.bytes();
  closed.set_way(v1::WAY_UNION);
  if (const ClosingRound* sent = can_add_own ? training_->sent(round.id) : nullptr;
      sent != nullptr && bytes_for(slot, *sent) < bytes.size()) {
    ByteRope others;
    closed.set_way(v1::WAY_FORWARDED);
    float members = 0.0F;
    for (const Entry& one : sent->members) members += one.weight;
    for (const Entry& one : sent->members) {
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
  replica_of(session).status.bytes_down += bytes.size();
  (void)session.send(std::move(frame));
  session.lanes.send({.cargo = Cargo::kMean,
                      .step = round.id.step,
                      .part = round.id.part,
                      .restarts = session.progress.restarts},
                     std::move(bytes));
}

}  // namespace longhaul
