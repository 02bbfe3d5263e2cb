// A replica's own messages whose mean it has not merged yet, oldest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/codec/payload.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/sync/part.h"
#include "longhaul/sync/saved.h"

namespace longhaul {

// What a message counts in.
enum class Unit : std::uint8_t {
  kGradient,  // an optimizer is to step with it
  kMove,      // parameters have moved by it
};

struct UnmergedMessage {
  RoundId round;
  Unit unit = Unit::kGradient;
  ByteBuffer bytes;
  std::optional<PayloadView> payload;  // of `bytes`; nothing: the message was empty
  Part part;

  // out += weight · message; `out` is of the whole model.
  void add_to(std::span<float> out, float weight) const {
    if (payload) longhaul::add(*payload, weight, part.of(out));
  }
};

class Unmerged {
 public:
  // Rounds are of one of `parts`; none: all are of the whole model.
  Unmerged(std::size_t elements, std::vector<Part> parts);

  void add(RoundId round, Unit unit, ByteView payload);
  [[nodiscard]] const Part& part_of(RoundId round) const { return parts_.at(round.part); }

  // The mean of `round` is being merged: our bug, if that is not the oldest.
  [[nodiscard]] const UnmergedMessage& oldest(RoundId round) const;
  void remove_oldest() { messages_.pop_front(); }
  void remove(RoundId oldest_round) {
    (void)oldest(oldest_round);
    remove_oldest();
  }

  [[nodiscard]] std::size_t count(Unit unit) const;
  // The units are equal on all replicas, the messages are not: those of a snapshot are empty.
  void save(Extent extent, State& state) const;
  Status load(Extent extent, const State& state, std::span<const RoundId> rounds);

  [[nodiscard]] auto begin() const { return messages_.begin(); }
  [[nodiscard]] auto end() const { return messages_.end(); }

 private:
  Status try_add(RoundId round, Unit unit, ByteView payload);

  std::vector<Part> parts_;
  std::deque<UnmergedMessage> messages_;  // a deque: views must not move away from their bytes
};

}  // namespace longhaul
