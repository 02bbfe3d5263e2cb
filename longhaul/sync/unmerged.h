// A replica's own messages whose mean it has not merged yet, by step and part. Rounds of one part
// are merged in their order; parts do not depend on each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/exchange/saved.h"
#include "longhaul/sync/part.h"

namespace longhaul {

// The unit in which a message counts.
enum class Unit : std::uint8_t {
  kGradient,  // an optimizer is to step with it
  kMove,      // parameters have moved by it
};

// A message of this replica whose mean has not been merged.
struct UnmergedMessage {
  RoundId round;
  Unit unit = Unit::kGradient;
  float weight = 1.0F;  // with which the replica counts on it until the mean is there
  CheckedPayload payload;
  Part part;

  [[nodiscard]] bool is_dense() const { return !payload.empty() && payload.view().is_dense(); }
  // out += factor · message; `out` is of the whole model.
  void add_to(std::span<float> out, float factor) const {
    if (!payload.empty()) longhaul::add(payload.view(), factor, part.of(out));
  }
};

class Unmerged {
 public:
  // Rounds are of one of `parts`; none: all are of the whole model.
  Unmerged(std::size_t elements, std::vector<Part> parts);

  void add(RoundId round, Unit unit, CheckedPayload payload, float weight = 1.0F);
  [[nodiscard]] const Part& part_of(RoundId round) const { return parts_.at(round.part); }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

  // The unmerged messages of a part, oldest first; valid until a message comes or goes.
  [[nodiscard]] std::vector<WeightedPayload> of(const Part& part) const;

  // The mean of `round` is being merged: our bug, if that is not the oldest of its part.
  [[nodiscard]] const UnmergedMessage& oldest(RoundId round) const;
  // The oldest message of its part is not in the mean of its round: it counts as empty from now on.
  void clear_oldest(RoundId round);
  void remove(RoundId oldest_round);

  [[nodiscard]] std::size_t count(Unit unit) const;
  // The units are equal on all replicas, messages and weights are not: a snapshot has none.
  void save(Extent extent, State& state) const;
  Status load(Extent extent, const State& state, std::span<const RoundId> rounds);

  // The replica counts on messages of that unit with another weight from now on.
  void set_weight(Unit unit, float weight);

  [[nodiscard]] auto begin() const { return messages_.begin(); }
  [[nodiscard]] auto end() const { return messages_.end(); }

 private:
  [[nodiscard]] std::size_t index_of(RoundId oldest_round) const;

  std::vector<Part> parts_;
  std::deque<UnmergedMessage> messages_;  // sorted by round
};

}  // namespace longhaul
