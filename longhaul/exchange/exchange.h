// How a replica reaches the others: it submits updates and collects the means of rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/codec/payload.h"
#include "longhaul/round/attendance.h"
#include "longhaul/round/plan.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

// One replica's message to a round.
struct Update {
  RoundId round;
  std::size_t elements = 0;  // of the part
  CheckedPayload payload;    // empty: nothing to send in this round
  Attendance attendance{};   // of its replica, as the hub keeps it
  // In place of a payload, where the exchange averages in place: the values of the part. They
  // become the mean of all replicas, and nobody else touches them until it was collected.
  std::span<float> in_place{};
};

// Payloads of updates that a replica has submitted; empty: nothing was to be sent.
using SentUpdates = std::map<RoundId, ByteBuffer>;

// The mean of a round, as a replica collects it.
struct Mean {
  RoundId round;
  // The mean of every element. Null: the mean is the sum of `terms` in their order, and summing
  // them tile by tile gives the same bits as sum_payloads().
  std::shared_ptr<const std::vector<float>>
      values;                          // shared: all replicas of one process read the same one
  std::vector<WeightedPayload> terms;  // none of them empty
  // This replica's own payload of the round, if it is not part of the mean (it came too late, say):
  // goes back to the residual. Empty: it is.
  CheckedPayload returned;
  // The plan for the steps after the one that merges this mean, if it changes: all replicas merge a
  // round in the same step, so all change at the same step.
  std::optional<Plan> next_plan;
  std::optional<TimePoint> arrived;  // on the clock of the replica; nothing: not known
  // Digest of the update of this replica that is in it, if one is and the hub says so.
  std::optional<std::uint64_t> own{};
  // The values of Update::in_place, where the update had them: they are the mean.
  std::span<const float> in_place{};

  [[nodiscard]] std::size_t elements() const {
    if (!in_place.empty()) return in_place.size();
    if (values) return values->size();
    return terms.empty() ? 0 : terms.front().payload.view().elements();
  }
  // Few elements differ from zero, and the terms name them.
  [[nodiscard]] bool is_sparse() const;
  // Every element of it, summed if need be.
  [[nodiscard]] std::vector<float> to_vector() const;
  // One tile of it: of the values, or summed in `sum`.
  [[nodiscard]] std::span<const float> tile(std::size_t tile, std::vector<float>& sum,
                                            TileEntries& scratch) const;
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Never blocks. Each round is submitted once, in ascending order for each part.
  virtual void submit(Update update) = 0;

  // Waits for the mean of a round that was submitted, or that closed without this replica, at most
  // until the deadline.
  virtual Result<Mean> collect(RoundId round, Deadline deadline) = 0;

  // Can an update have values in place of a payload?
  [[nodiscard]] virtual bool averages_in_place() const { return false; }
};

}  // namespace longhaul
