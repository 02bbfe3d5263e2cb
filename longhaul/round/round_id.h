// The name of a round, and the order in which rounds close.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace longhaul {

// A round is named by the step its updates were born in and the part of the model that they cover.
//
// Rounds compare by step, then by part. Rounds close in that order, the hub announces their means
// in it, and members merge in it those that are due in one step. The rounds of one step have
// members, updates and means of their own; only their order is common.
struct RoundId {
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  auto operator<=>(const RoundId&) const =
      default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

// The first name behind that of a round, whether there is a round of it or not: "everything up to
// this round" is everything before it.
[[nodiscard]] constexpr RoundId after(RoundId round) {
  if (round.part == std::numeric_limits<std::uint32_t>::max()) return {.step = round.step + 1};
  return {.step = round.step, .part = round.part + 1};
}

// "12", or "12, part 3": for messages to people.
[[nodiscard]] inline std::string to_string(RoundId round) {
  std::string text = std::to_string(round.step);
  if (round.part > 0) text.append(", part ").append(std::to_string(round.part));
  return text;
}

}  // namespace longhaul
