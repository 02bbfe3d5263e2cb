// Which rounds are open, who takes part in them, and when they close. Pure: time comes in, rounds
// go out; the hub feeds it.
//
// Rounds close in the order of their names, by step and then by part. A round waits for every live
// member, or, with a smaller quorum, for that share of them and then for a while longer. A round
// that none of those who are here takes part in closes at once, with what others left behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/codec/payload.h"
#include "longhaul/round/attendance.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

struct RoundPolicy {
  std::size_t least = 1;  // members: with fewer of them no round closes
  double quorum = 1.0;    // share of the live members, above 0
  Seconds grace{};        // how long the others are waited for once the quorum is there
};

// The outcome of a submission.
enum class Taken : std::uint8_t {
  kIn,
  kAlreadyIn,  // the same replica has submitted to this round before: nothing counts twice
  kTooLate,    // the round has closed without it: the update goes back to its replica
  kNotMember,  // the replica takes part from a later round on
};

// One member's part in a round that closes.
struct Entry {
  std::size_t slot = 0;
  float weight = 1.0F;
  bool has_submitted = false;  // else nobody waits for it any longer, or it was rejected
  CheckedPayload payload;      // empty: nothing to send
  Attendance attendance;
  TimePoint at;  // when it was submitted
};

struct ClosingRound {
  RoundId round;
  std::vector<Entry> members;  // in replica order: their weights make the divisor
};

class RoundBook {
 public:
  RoundBook(const RoundPolicy& policy, RoundId first) : policy_(policy), next_(first) {}

  // Member of every round from `from` on, which is not before next().
  void join(std::size_t slot, float weight, RoundId from);
  // No round waits for it any longer; what it has submitted stays in.
  void leave(std::size_t slot);
  [[nodiscard]] std::size_t members() const { return members_.size(); }

  Taken submit(std::size_t slot, RoundId round, CheckedPayload payload, TimePoint now,
               Attendance attendance = {});
  // Its update cannot be used. The round no longer waits for it, and closes without it.
  Taken reject(std::size_t slot, RoundId round, TimePoint now);

  // The last update of this slot in a round that has not closed yet.
  [[nodiscard]] std::optional<Contributed> last_of(std::size_t slot) const;

  // The round that closes next: the one that is expected; before that, the name behind the last.
  [[nodiscard]] RoundId next() const { return next_; }
  // Since when it may close; nothing while it waits for someone.
  [[nodiscard]] std::optional<TimePoint> closes_at() const;
  // Precondition: closes_at() has come.
  ClosingRound close();
  // There is no other round before this one: steps and parts without a round are passed over.
  // Precondition: it is not before next(), so rounds close in order.
  void expect(RoundId round);

 private:
  struct Member {
    float weight = 1.0F;
    RoundId from;
  };
  using OpenRound = std::map<std::size_t, Entry>;  // by slot
  Taken take(RoundId round, Entry entry);

  RoundPolicy policy_;
  RoundId next_;
  std::map<std::size_t, Member> members_;
  std::map<RoundId, OpenRound> open_;
};

}  // namespace longhaul
