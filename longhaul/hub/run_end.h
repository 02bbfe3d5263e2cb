// When and why a run ends. Once the last step is known, it only moves to an earlier one. Belongs to
// the hub's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/hub/peer.h"

namespace longhaul {

class RunEnd {
 public:
  // The run has so many steps; 0: not known. `cause`: why.
  void expect(std::uint64_t steps, v1::FinishCause cause);

  // The hub is asked to end. CAUSE_STOPPED: the run goes on with another hub.
  void ask(v1::FinishCause cause);
  // The answer waits until the round that is closing has closed. The first cause counts.
  void postpone(v1::FinishCause cause);
  std::optional<v1::FinishCause> take_postponed();
  // It ends after this step, or did not start.
  void set(std::optional<std::uint64_t> last_step, v1::FinishCause cause);

  // It ends with this step or an earlier one.
  [[nodiscard]] bool is_due(std::uint64_t step) const { return last_step_ && *last_step_ <= step; }
  // The last round has closed; `next` would be the next one.
  [[nodiscard]] bool is_past(RoundId next) const { return last_step_ && next.step > *last_step_; }
  [[nodiscard]] bool is_asked() const { return is_asked_; }
  [[nodiscard]] bool is_stopping() const { return is_stopping_; }
  [[nodiscard]] std::optional<std::uint64_t> last_step() const { return last_step_; }
  [[nodiscard]] v1::FinishCause cause() const { return cause_; }

  // If it is known: before the means that lead there, as with those a replica could go on beyond.
  void tell(Peer& peer) const;

 private:
  std::optional<std::uint64_t> last_step_;
  v1::FinishCause cause_ = v1::CAUSE_STEPS;
  std::optional<v1::FinishCause> postponed_;
  bool is_asked_ = false;
  bool is_stopping_ = false;
};

}  // namespace longhaul
