// One replica's part in a round.
#pragma once

#include <cstddef>

#include "longhaul/base/clock.h"
#include "longhaul/codec/payload.h"
#include "longhaul/round/attendance.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

// A member's update in a round.
// In a round, or to be in it when it closes. Those who ask a hub for the last contribution of a
// replica are told its round and attendance.
struct Contribution {
  RoundId round;
  std::size_t slot = 0;
  float weight = 1.0F;
  bool has_submitted = false;  // else nobody waits for it any longer, or it was rejected
  CheckedPayload payload;      // empty: nothing to send
  Attendance attendance;
  TimePoint at;  // when it was submitted
};

}  // namespace longhaul
