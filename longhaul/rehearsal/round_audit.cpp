#include "longhaul/rehearsal/round_audit.h"

#include <set>
#include <string>

namespace longhaul {

void RoundAudit::note(const std::string& what) {
  if (!wrong_) wrong_ = Error{ErrorCode::kMismatch, what};
}

void RoundAudit::on_round(const nlohmann::ordered_json& event) {
  const RoundId round{.step = event.at("step"), .part = event.at("part")};
  const bool is_next = rounds_ == 0 ? event.at("from") == 0 : round == next_;
  if (round < end_) note("round " + to_string(round) + " closed twice, or after a later one");
  if (!is_next && !may_miss_)
    note("a round between " + to_string(end_) + " and " + to_string(round) + " is missing");
  ++rounds_;
  end_ = after(round);
  next_ = {.step = event.at("next"), .part = event.at("next_part")};
  may_miss_ = false;
  std::set<std::uint64_t> slots;
  for (const auto& one : event.at("contributors"))
    slots.insert(one.at("slot").get<std::uint64_t>());
  contributions_ += slots.size();
  if (slots.size() != event.at("contributors").size())
    note("round " + to_string(round) + ": a replica is in it twice");
  if (slots.size() > event.at("members").get<std::size_t>())
    note("round " + to_string(round) + ": more contributors than members");
}

void RoundAudit::on_status(const nlohmann::ordered_json& event) {
  if (event.at("mismatches").get<std::uint64_t>() > 0)
    note("the shared model of a replica was not the hub's");
}

Status RoundAudit::verdict(std::size_t steps) const {
  if (wrong_) return *wrong_;
  if (next_.step < steps)
    return Error{ErrorCode::kMismatch, "round " + to_string(next_) + " of a run of " +
                                           std::to_string(steps) + " steps has not closed"};
  return Done{};
}

}  // namespace longhaul
