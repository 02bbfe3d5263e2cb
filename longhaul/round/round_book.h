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
#include "longhaul/round/contribution.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

// When a round may close.
struct RoundOptions {
  std::size_t least = 1;  // members: with fewer of them no round closes
  double quorum = 1.0;    // share of the live members, above 0
  Seconds grace{};        // how long the others are waited for once the quorum is there
};

// The outcome of a submission.
enum class SubmitOutcome : std::uint8_t {
  kIn,
  kAlreadyIn,  // the same replica has submitted to this round before: nothing counts twice
  kTooLate,    // the round has closed without it: the update goes back to its replica
  kNotMember,  // the replica takes part from a later round on
};

// A round that closes, with the updates of its members.
struct ClosingRound {
  RoundId round;
  std::vector<Contribution> members;  // in replica order: their weights make the divisor
};

class RoundBook {
 public:
  RoundBook(const RoundOptions& options, RoundId first) : options_(options), next_(first) {}

  // Member of every round from `from` on, which is not before next().
  void join(std::size_t slot, float weight, RoundId from);
  // No round waits for it any longer; what it has submitted stays in.
  void leave(std::size_t slot);
  [[nodiscard]] std::size_t members() const { return members_.size(); }

  SubmitOutcome submit(std::size_t slot, RoundId round, CheckedPayload payload, TimePoint now,
                       Attendance attendance = {});
  // Its update cannot be used. The round no longer waits for it, and closes without it.
  SubmitOutcome reject(std::size_t slot, RoundId round, TimePoint now);

  // The last update of this slot in a round that has not closed yet.
  [[nodiscard]] std::optional<Contribution> last_of(std::size_t slot) const;

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
  using OpenRound = std::map<std::size_t, Contribution>;  // by slot
  SubmitOutcome take(Contribution contribution);

  RoundOptions options_;
  RoundId next_;
  // By slot: an empty contribution to the first round of each, with its weight in all of them.
  std::map<std::size_t, Contribution> members_;
  std::map<RoundId, OpenRound> open_;
};

}  // namespace longhaul
