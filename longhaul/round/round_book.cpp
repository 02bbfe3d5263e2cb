#include "longhaul/round/round_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {

void RoundBook::join(std::size_t slot, float weight, RoundId from) {
  LONGHAUL_CHECK(from >= next_);
  members_[slot] = {.weight = weight, .from = from};
}

void RoundBook::leave(std::size_t slot) { members_.erase(slot); }

Taken RoundBook::submit(std::size_t slot, RoundId round, CheckedPayload payload, TimePoint now,
                        Attendance attendance) {
  return take(round, {.slot = slot,
                      .has_submitted = true,
                      .payload = std::move(payload),
                      .attendance = std::move(attendance),
                      .at = now});
}

Taken RoundBook::reject(std::size_t slot, RoundId round, TimePoint now) {
  return take(round, {.slot = slot, .at = now});
}

Taken RoundBook::take(RoundId round, Entry entry) {
  const auto member = members_.find(entry.slot);
  if (member == members_.end()) return Taken::kNotMember;
  if (round < next_) return Taken::kTooLate;
  if (round < member->second.from) return Taken::kNotMember;
  entry.weight = member->second.weight;
  const bool is_new = open_[round].try_emplace(entry.slot, std::move(entry)).second;
  return is_new ? Taken::kIn : Taken::kAlreadyIn;
}

std::optional<Contributed> RoundBook::last_of(std::size_t slot) const {
  std::optional<Contributed> last;
  for (const auto& [round, submissions] : open_) {
    const auto own = submissions.find(slot);
    if (own != submissions.end() && own->second.has_submitted)
      last = {.round = round, .attendance = own->second.attendance};
  }
  return last;
}

std::optional<TimePoint> RoundBook::closes_at() const {
  if (members_.empty() || members_.size() < policy_.least) return std::nullopt;  // wait for them
  const auto round = open_.find(next_);
  std::size_t live = 0;
  std::vector<TimePoint> times;  // of the live members that have submitted
  for (const auto& [slot, member] : members_) {
    if (member.from > next_) continue;
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
      std::max(1.0, std::ceil(policy_.quorum * static_cast<double>(live) - 1e-9)));
  if (times.size() < needed) return std::nullopt;
  std::ranges::sort(times);
  return time_after(times[needed - 1], policy_.grace);
}

ClosingRound RoundBook::close() {
  ClosingRound closing{.round = next_};
  // Members and those who submitted before they left, in replica order.
  std::map<std::size_t, Entry> entries;
  for (const auto& [slot, member] : members_) {
    if (member.from <= next_) entries[slot] = {.slot = slot, .weight = member.weight};
  }
  for (auto& [slot, entry] : open_[next_]) entries[slot] = std::move(entry);
  for (auto& [slot, entry] : entries) closing.members.push_back(std::move(entry));
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
