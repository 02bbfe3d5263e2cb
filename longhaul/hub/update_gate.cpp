#include "longhaul/hub/update_gate.h"

#include <algorithm>
#include <utility>

#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostUnchecked = 4;  // updates of a replica; then its lanes are not read

// Adding a payload costs O(rank) per element, so ranks above the recipe's are rejected.
Result<CheckedPayload> check_update(ByteBuffer bytes, std::size_t elements,
                                    const CodecOptions& codec) {
  Result<CheckedPayload> update = CheckedPayload::check_update(std::move(bytes), elements);
  if (!update.ok() || update->empty()) return update;
  const bool is_asked_for =
      codec.kind == CodecKind::kLowRank || codec.kind == CodecKind::kSharedLowRank;
  const std::uint32_t most = is_asked_for ? codec.rank : 0;
  if (std::ranges::all_of(update->view().matrices(),
                          [&](const auto& matrix) { return matrix.rank <= most; }))
    return update;
  return corrupt_payload("low rank: a rank that its recipe does not have");
}

}  // namespace

Status UpdateGate::take(Peer& peer, Arrival arrival, const CodecOptions& codec) {
  if (training_ == nullptr) return Done{};
  const std::uint32_t restarts = arrival.id.restarts;
  if (restarts != peer.progress.restarts) {  // of a state that is gone
    ++roster_.of(peer).returned;
    return Done{};
  }
  const RoundId round{.step = arrival.id.step, .part = arrival.id.part};
  Attendance attendance = LONGHAUL_TRY(attendance_from(arrival.attendance, round.step));
  const std::optional<std::size_t> elements = training_->elements_of(round);
  if (!elements && round >= training_->book().next())
    return corrupt_payload("an update of a step and part without a round");
  if (!elements) {  // of a round that closed long ago
    ++roster_.of(peer).returned;
    return Done{};
  }
  peer.lanes.set_reading(++peer.unchecked < kMostUnchecked);
  Update update{.round = round, .elements = *elements, .attendance = std::move(attendance)};
  run_errand(
      errands_,
      [bytes = std::move(arrival.bytes), update = std::move(update),
       codec]() mutable -> Result<Update> {
        update.payload = LONGHAUL_TRY(check_update(std::move(bytes), update.elements, codec));
        return std::move(update);
      },
      [this, control = peer.control(), restarts, round, at = now_](Result<Update>&& checked) {
        // A replica that has gone meanwhile submits again.
        Peer* sender = roster_.peer_on(control);
        if (sender != nullptr) on_checked(*sender, restarts, round, at, std::move(checked));
      });
  return Done{};
}

void UpdateGate::on_checked(Peer& peer, std::uint32_t restarts, RoundId round, TimePoint at,
                            Result<Update> update) {
  peer.lanes.set_reading(--peer.unchecked < kMostUnchecked);
  if (training_ == nullptr) return;
  ReplicaStatus& replica = roster_.of(peer);
  if (restarts != peer.progress.restarts) {  // its state was replaced meanwhile
    ++replica.returned;
    return;
  }
  if (!update.ok()) {
    // Nothing of it is merged, and nobody waits for it: it is as if it had sent nothing.
    log_.warn("replica " + peer.name() + ": rejected: " + update.error().message, now_);
    ++replica.returned;
    ++replica.rejected;
    ++rejected_;
    (void)training_->book().reject(peer.slot(), round, at);
    return;
  }
  if (round >= peer.progress.next_mean) peer.progress.own[round] = update->payload.digest();
  const SubmitOutcome outcome = training_->book().submit(
      peer.slot(), round, std::move(update->payload), at, std::move(update->attendance));
  if (outcome == SubmitOutcome::kTooLate || outcome == SubmitOutcome::kNotMember)
    ++replica.returned;
}

}  // namespace longhaul
