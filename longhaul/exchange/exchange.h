// How a replica reaches the others: it submits updates and collects the means of rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/round/plan.h"

namespace longhaul {

// A round is named by the step its updates were born in and the part of the model that they cover.
struct RoundId {
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  auto operator<=>(const RoundId&) const =
      default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

struct Update {
  RoundId round;
  std::size_t elements = 0;  // of the part
  ByteBuffer payload;        // empty: nothing to send in this round
};

struct Mean {
  RoundId round;
  std::shared_ptr<const std::vector<float>>
      values;  // shared: all replicas of one process read the same one
  // This replica's own payload of the round, if it is not part of the mean (it came too late, say):
  // goes back to the residual. Empty: it is.
  ByteBuffer returned;
  // The plan for the steps after the one that merges this mean, if it changes: all replicas merge a
  // round in the same step, so all change at the same step.
  std::optional<Plan> next_plan;
  std::optional<TimePoint> arrived;  // on the clock of the replica; nothing: not known
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Never blocks. Each round is submitted once, in ascending order for each part.
  virtual void submit(Update update) = 0;

  // Waits for the mean of a round that was submitted, or that closed without this replica, at most
  // until the deadline.
  virtual Result<Mean> collect(RoundId round, Deadline deadline) = 0;
};

}  // namespace longhaul
