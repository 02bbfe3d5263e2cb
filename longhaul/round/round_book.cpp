#include "longhaul/round/round_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {

void RoundBook::join(std::size_t slot, float weight, RoundId from) {
  LONGHAUL_CHECK(from >= next_);
  members_[slot] = {.round = from, .slot = slot, .weight = weight};
}

void RoundBook::leave(std::size_t slot) { members_.erase(slot); }

SubmitOutcome RoundBook::submit(std::size_t slot, RoundId round, CheckedPayload payload,
                                TimePoint now, Attendance attendance) {
  return take({.round = round,
               .slot = slot,
               .has_submitted = true,
               .payload = std::move(payload),
               .attendance = std::move(attendance),
               .at = now});
}

SubmitOutcome RoundBook::reject(std::size_t slot, RoundId round, TimePoint now) {
  return take({.round = round, .slot = slot, .at = now});
}

SubmitOutcome RoundBook::take(Contribution contribution) {
  const auto found = members_.find(contribution.slot);
  if (found == members_.end()) return SubmitOutcome::kNotMember;
  const Contribution& member = found->second;
  if (contribution.round < next_) return SubmitOutcome::kTooLate;
  if (contribution.round < member.round) return SubmitOutcome::kNotMember;
  contribution.weight = member.weight;
  OpenRound& round = open_[contribution.round];
  const bool is_new = round.try_emplace(member.slot, std::move(contribution)).second;
  return is_new ? SubmitOutcome::kIn : SubmitOutcome::kAlreadyIn;
}

std::optional<Contribution> RoundBook::last_of(std::size_t slot) const {
  std::optional<Contribution> last;
  for (const auto& [round, contributions] : open_) {
    const auto own = contributions.find(slot);
    if (own != contributions.end() && own->second.has_submitted) last = own->second;
  }
  return last;
}

std::optional<TimePoint> RoundBook::closes_at() const {
  if (members_.empty() || members_.size() < options_.least) return std::nullopt;  // wait for them
  const auto round = open_.find(next_);
  std::size_t live = 0;
  std::vector<TimePoint> times;  // of the live members that have submitted
  for (const auto& [slot, member] : members_) {
    if (member.round > next_) continue;
    ++live;
    if (round == open_.end()) continue;
    const auto submitted = round->second.find(slot);
    if (submitted != round->second.end()) times.push_back(submitted->second.at);
  }
  // All who are here take part from a later round on: they would wait for this one for ever.
  if (live == 0) return TimePoint{};
  if (round == open_.end()) return std::nullopt;
  if (times.size() == live) {
    TimePoint latest{};
    for (const auto& [slot, submitted] : round->second) latest = std::max(latest, submitted.at);
    return latest;
  }
  const auto needed = static_cast<std::size_t>(
      std::max(1.0, std::ceil(options_.quorum * static_cast<double>(live) - 1e-9)));
  if (times.size() < needed) return std::nullopt;
  std::ranges::sort(times);
  return time_after(times[needed - 1], options_.grace);
}

ClosingRound RoundBook::close() {
  ClosingRound closing{.round = next_};
  // Members and those who submitted before they left, in replica order.
  OpenRound all = std::move(open_[next_]);
  for (const auto& [slot, member] : members_) {
    if (member.round > next_) continue;
    all.try_emplace(slot, Contribution{.round = next_, .slot = slot, .weight = member.weight});
  }
  for (auto& [slot, contribution] : all) closing.members.push_back(std::move(contribution));
  open_.erase(next_);
  next_ = after(next_);
  return closing;
}

void RoundBook::expect(RoundId round) {
  LONGHAUL_CHECK(round >= next_);
  next_ = round;
  open_.erase(open_.begin(), open_.lower_bound(round));
}

}  // namespace longhaul
