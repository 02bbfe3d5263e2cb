// The header by which a rank announces its payload in each turn of a collective.
#pragma once

#include <cstdint>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "longhaul/base/units.h"
#include "longhaul/round/round_id.h"

namespace longhaul::trainer {

struct Turn {
  RoundId round;
  std::uint64_t elements = 0;  // of its part
  std::uint64_t bytes = 0;     // of its payload; 0: nothing to send
  std::uint64_t kept = 0;      // step of its newest checkpoint
  Seconds clock{};             // since it started
  Seconds computing{};         // of its last step; 0: not known yet
  // As it saw the turn before.
  Seconds header_time{};
  Seconds payload_time{};
  std::uint64_t payload_bytes = 0;  // with padding
};

// A fixed number of bytes.
ByteBuffer to_bytes(const Turn& turn);
// Refuses bytes that no rank can have meant.
Result<Turn> turn_from_bytes(ByteView bytes);

}  // namespace longhaul::trainer
