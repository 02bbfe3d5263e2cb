// Lets updates into their rounds. An update is checked by an errand first, so nothing malformed
// reaches a round. The lanes of a replica are not read while some of its updates are being checked.
// Belongs to the hub's loop.
#pragma once

#include <cstdint>

#include "longhaul/base/errands.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/hub/hub_log.h"
#include "longhaul/hub/roster.h"
#include "longhaul/hub/training.h"

namespace longhaul {

class UpdateGate {
 public:
  // `now` is the time of the event under way.
  UpdateGate(Roster& roster, HubLog& log, Errands& errands, const TimePoint& now)
      : roster_(roster), log_(log), errands_(errands), now_(now) {}

  // The run starts, or the hub has failed and has no run: null.
  void serve(Training* training) { training_ = training; }

  // An error: no replica that follows the protocol sends it.
  Status take(Peer& peer, Arrival arrival, const CodecOptions& codec);

  [[nodiscard]] std::uint64_t rejected() const { return rejected_; }

 private:
  // `at`: when it came.
  void on_checked(Peer& peer, std::uint32_t restarts, RoundId round, TimePoint at,
                  Result<Update> update);

  Roster& roster_;
  HubLog& log_;
  Errands& errands_;
  const TimePoint& now_;
  Training* training_ = nullptr;
  std::uint64_t rejected_ = 0;
};

}  // namespace longhaul
