#include "longhaul/hub/training.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

constexpr std::size_t kSentRounds = 8;  // of a part, those that are on their way right now

}  // namespace

Training::Training(std::unique_ptr<ModelKeeper> keeper)
    : keeper_(std::move(keeper)),
      first_(keeper_->first_decision()),
      standing_(keeper_->model().standing()),
      book_(keeper_->options().policy, standing_.next_to_close),
      journal_(keeper_->journal().at_hand()) {}

std::optional<std::size_t> Training::open_round(RoundId round) const {
  if (!std::ranges::binary_search(standing_.open, round)) return std::nullopt;
  return standing_.part_elements.at(round.part);
}

// The model may have had other parts then.
std::optional<std::size_t> Training::elements_of(RoundId round) const {
  if (const std::optional<std::size_t> open = open_round(round)) return open;
  const JournalRound* closed = journal_.first_from(round);
  if (closed != nullptr && closed->id == round) return closed->elements;
  return std::nullopt;
}

std::optional<std::uint64_t> Training::digest_before(std::uint64_t step) const {
  const auto found = standing_.digests.find(step);
  if (found == standing_.digests.end()) return std::nullopt;
  return found->second;
}

std::optional<Contribution> Training::last_of(std::size_t slot, RoundId from) const {
  if (std::optional<Contribution> open = book_.last_of(slot)) return open;
  if (closing_) {
    const auto own = std::ranges::find(closing_->members, slot, &Contribution::slot);
    if (own != closing_->members.end() && own->has_submitted && closing_->round >= from)
      return Contribution{.round = closing_->round, .attendance = own->attendance};
  }
  return journal_.last_of(slot, from);
}

const ClosingRound& Training::begin_closing() {
  LONGHAUL_CHECK(!closing_);
  return closing_.emplace(book_.close());
}

void Training::end_closing(const RoundOutcome& closed) {
  LONGHAUL_CHECK(closing_ && closing_->round == closed.round.id);
  ClosingRound closing = *std::exchange(closing_, std::nullopt);
  standing_ = closed.standing;
  journal_.add(closed.round, standing_.next_round.step);
  book_.expect(standing_.next_to_close);
  const auto period = static_cast<std::uint64_t>(standing_.plan.period_steps);
  while (!sent_.empty() && sent_.front().round.step + kSentRounds * period <= closing.round.step)
    sent_.pop_front();
  // Payloads are as much as the mean, for each replica: only where one of them is better off.
  if (closed.is_forwarded) sent_.push_back(std::move(closing));
}

const ClosingRound* Training::sent(RoundId round) const {
  const auto found = std::ranges::find(sent_, round, &ClosingRound::round);
  return found == sent_.end() ? nullptr : &*found;
}

}  // namespace longhaul
