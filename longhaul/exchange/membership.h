// A replica's place in a run: the plan it begins with, its stance in each step, the state that it
// is given. The exchange carries its updates; this says when it has any to send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/base/units.h"
#include "longhaul/round/plan.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

// The part that a replica plays in a step.
enum class Stance : std::uint8_t {
  kTakePart,  // compute a gradient and submit it
  kSitOut,    // the round closes without this replica: it only merges the mean
  kRestart,   // take_snapshot() comes first: the state of this replica has been replaced
  kFinish,    // there is no such step: the run is over
};

// The reason why a step is the last one.
enum class FinishCause : std::uint8_t {
  kSteps,    // all steps are done
  kStopped,  // someone stopped the run, and it can go on later
  kTarget,   // the target is reached
};

// Digests of the shared model are compared before each step that is a multiple of this.
inline constexpr std::uint64_t kDigestEvery = 16;

// How a step went, for the planner and for people.
struct StepReport {
  std::uint64_t step = 0;  // the next one
  double loss = 0;
  Seconds computing{};
  double waiting_share = 0;               // of its time, for means
  std::uint32_t passes = 0;               // forward and backward
  std::optional<std::uint64_t> digest{};  // of the shared model: see kDigestEvery
};

class Membership {
 public:
  virtual ~Membership() = default;

  // Waits until the run starts, and returns the plan to begin with. Nothing: the state of this
  // replica is replaced instead, and take_snapshot() has it.
  virtual Result<std::optional<Plan>> first_plan(Deadline deadline) = 0;

  // Decides what this replica does in the step, and waits until that is known. `round` is the last
  // round of the next step that has rounds. Errors other than kDeadline are final.
  virtual Result<Stance> stance(std::uint64_t step, RoundId round, Deadline deadline) = 0;

  // The state that replaces this replica's own. Precondition: kRestart, or no first plan.
  virtual State take_snapshot() = 0;

  // Counts the updates that this replica submitted and whose means it has not collected.
  [[nodiscard]] virtual std::size_t updates_in_flight() const = 0;

  // Waits until the mean of a round can be collected without waiting.
  virtual Status await(RoundId round, Deadline deadline) = 0;

  // Never blocks.
  virtual void report(const StepReport& report) = 0;

  // Adds to a checkpoint what this member needs to come back. The engine's state is in it already.
  virtual void save(State& checkpoint) const = 0;
};

}  // namespace longhaul
