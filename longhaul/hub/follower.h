// The hub's own copy of the shared model: a replica that never has a gradient. It merges what the
// others send, so it can hand its state to whoever joins.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "longhaul/base/state.h"
#include "longhaul/sync/engine.h"

namespace longhaul {

// Where the hub's copy stands, for a thread that must not touch the copy itself.
struct Standing {
  std::uint64_t step = 0;  // what a replica would do next
  RoundId next_round;      // the first one that is not merged
  RoundId next_to_close;
  std::vector<RoundId> open;  // those that a replica can have begun and that are not merged
  std::vector<std::size_t> part_elements;
  Plan plan;                                       // in force, or announced
  std::map<std::uint64_t, std::uint64_t> digests;  // of the shared model, before some steps
};

class Follower {
 public:
  // `options` as the replicas have it; `initial` is where they start; `steps` of the run, if known.
  Follower(const EngineOptions& options, std::vector<float> initial,
           std::optional<std::uint64_t> steps = {});

  // The next round has closed. Merges all that is due: afterwards it stands at the first step that
  // a replica cannot have finished.
  void closed(Mean mean);

  // The run has so many steps, no fewer than it has done. It stops there as replicas do, and merges
  // what is still on its way as it comes.
  void end_after(std::uint64_t steps);

  // The step that a replica would do next: rounds from next_round() on are not merged, and from
  // next_to_close() on they have not closed. The two differ where a step waits for several of them.
  [[nodiscard]] std::uint64_t step() const { return engine_.steps_done(); }
  [[nodiscard]] RoundId next_round() const;
  [[nodiscard]] RoundId next_to_close() const;
  // Elements of the part of a round, if it is one that a replica can have begun and that is not
  // merged.
  [[nodiscard]] std::optional<std::size_t> open_round(RoundId round) const;
  [[nodiscard]] std::size_t parts() const { return engine_.parts(); }
  // In force, or announced.
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] std::span<const float> shared() const { return engine_.shared(); }

  // The digest of the shared model before a step; known for the last multiples of kDigestEvery.
  [[nodiscard]] std::optional<std::uint64_t> digest_before(std::uint64_t step) const;
  [[nodiscard]] Standing standing() const;

  [[nodiscard]] State save() const { return engine_.save_shared(); }
  Status load(const State& state);

 private:
  // Means that have come and are not due yet.
  class Shelf final : public Exchange {
   public:
    void submit(Update /*update*/) override {}
    Result<Mean> collect(RoundId round, Deadline deadline) override;
    std::map<RoundId, Mean> means;
  };
  // Has a mean that is due in this step not come yet?
  [[nodiscard]] bool is_waiting() const;
  void go_on();
  void note_digest();

  std::vector<float> parameters_;
  Workers workers_{1};
  Shelf shelf_;
  Plan plan_;
  std::optional<std::uint64_t> steps_;  // of the run
  Engine engine_;
  std::map<std::uint64_t, std::uint64_t> digests_;  // by step
};

}  // namespace longhaul
