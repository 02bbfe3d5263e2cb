// Updates in, means out: what a round takes, when it closes, and how its mean travels.
#include <algorithm>
#include <utility>

#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/hub/hub_core.h"

namespace longhaul {
namespace {

constexpr std::uint64_t kMostMeansOnTheWay = 4;

// To add a payload costs its rank for every element: no more than the recipe's own have.
Status check_update(ByteView bytes, std::size_t elements, const CodecSpec& codec) {
  const Result<PayloadView> view = PayloadView::parse(bytes, elements);
  if (!view.ok()) return view.error();
  const LowRankBody* factors = view->low_rank();
  if (factors == nullptr) return Done{};
  const bool is_asked_for =
      codec.kind == CodecKind::kLowRank || codec.kind == CodecKind::kSharedLowRank;
  const std::uint32_t most = is_asked_for ? codec.rank : 0;
  if (std::ranges::all_of(factors->blocks, [&](const auto& block) { return block.rank <= most; }))
    return Done{};
  return corrupt_payload("low rank: a rank that its recipe does not have");
}

}  // namespace

void HubCore::on_update(Session& session, Arrival arrival, TimePoint now) {
  if (!training_) return;
  const std::size_t slot = session.identity().slot;
  Replica& replica = replica_of(session);
  if (arrival.id.restarts != session.progress.restarts) {  // of a state that is gone
    ++replica.status.returned;
    return;
  }
  const RoundId round{.step = arrival.id.step, .part = arrival.id.part};
  Result<Attendance> attendance = attendance_from(arrival.attendance, round.step);
  if (!attendance.ok()) return reject(session, attendance.error().message);
  if (round.part >= training_->model().parts())
    return reject(session, "an update of a part that the model does not have");
  const bool is_late = round < training_->book().next();
  const std::optional<std::size_t> open = training_->model().open_round(round);
  if (!open && !is_late) return reject(session, "an update of a step and part without a round");
  if (!arrival.bytes.empty() && open) {
    const Status fits = check_update(arrival.bytes, *open, setup_.training.engine.recipe.codec);
    if (!fits.ok()) {
      // Nothing of it is merged, and nobody waits for it: it is as if it had sent nothing.
      warn("replica " + session.identity().name + ": rejected: " + fits.error().message);
      ++replica.status.returned;
      ++replica.status.rejected;
      ++rejected_;
      (void)training_->book().reject(slot, round, now);
      return;
    }
  }
  if (round >= session.progress.next_mean) session.progress.own[round] = digest_of(arrival.bytes);
  const Taken taken = training_->book().submit(slot, round, std::move(arrival.bytes), now,
                                               std::move(attendance).value());
  if (taken == Taken::kTooLate || taken == Taken::kNotMember) ++replica.status.returned;
}

void HubCore::close_rounds(TimePoint now) {
  while (training_) {
    const std::optional<TimePoint> at = training_->book().closes_at();
    if (!at || *at > now) return;
    const Conditions replicas = conditions();
    Result<RoundOutcome> outcome = training_->close_next(replicas);
    if (!outcome.ok()) return fail(outcome.error());
    measure(*outcome, replicas, now);
    if (outcome->decision) reason_ = outcome->decision->reason;
    for (const auto& [id, session] : sessions_) send_means(*session);
    if (watcher_) watcher_({.outcome = *outcome, .time = now});
  }
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
  SharedBytes bytes = round.mean;
  closed.set_way(v1::WAY_UNION);
  if (const SentPayloads* sent = can_add_own ? training_->sent(round.id) : nullptr;
      sent != nullptr && sent->bytes_for(slot) < bytes->size()) {
    auto others = std::make_shared<ByteBuffer>();
    others->reserve(sent->bytes_for(slot));
    closed.set_way(v1::WAY_FORWARDED);
    for (const SentPayloads::One& one : sent->payloads) {
      if (one.slot != slot) others->insert(others->end(), one.payload->begin(), one.payload->end());
      v1::Contribution& told = *closed.add_contributions();
      told.set_slot(static_cast<std::uint32_t>(one.slot));
      told.set_weight(one.share);
      told.set_bytes(one.payload->size());
    }
    bytes = std::move(others);
  }
  closed.set_bytes(bytes->size());
  replica_of(session).status.bytes_down += bytes->size();
  (void)session.send(std::move(frame));
  session.lanes.send({.cargo = Cargo::kMean,
                      .step = round.id.step,
                      .part = round.id.part,
                      .restarts = session.progress.restarts},
                     std::move(bytes));
}

}  // namespace longhaul
