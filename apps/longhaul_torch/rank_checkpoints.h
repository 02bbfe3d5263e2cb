// The two checkpoints that a rank of a collective keeps: the newest, and the one before.
//
// All ranks write after the same steps. None writes its next before all have their last, so there
// is always a step of which all have a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/longhaul/train/train_options.h"
#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/sync/checkpoint.h"
#include "trainer/rank_calls.h"

namespace longhaul::apps {

class RankCheckpoints {
 public:
  explicit RankCheckpoints(const CheckpointOptions& options);

  [[nodiscard]] bool are_written() const { return !options_.file.empty(); }
  [[nodiscard]] const std::filesystem::path& newest() const { return options_.file; }

  // All ranks call it. They agree on the step to go on from, and drop checkpoints of later steps.
  // Nothing: the beginning.
  Result<std::optional<State>> agree(const trainer::AllGather& gather, std::size_t size,
                                     bool resume);

  void set_identity(RunIdentity identity) { identity_ = std::move(identity); }
  // Is it of this run?
  [[nodiscard]] Status check(const State& checkpoint) const;

  // The run starts after this many steps.
  void start_at(std::uint64_t step) { saved_step_ = step; }
  // `now` and `kept_by_all` are equal on all ranks.
  [[nodiscard]] bool is_due(std::uint64_t step, Seconds now, std::uint64_t kept_by_all) const;
  // Precondition: is_due().
  Status write(State state, std::uint64_t step, Seconds now);
  // As CheckpointWriter::take_outcome().
  [[nodiscard]] std::optional<Result<std::uint64_t>> take_outcome();

 private:
  Status open();
  Status drop_after(std::uint64_t step, bool is_step_previous);

  CheckpointOptions options_;
  std::filesystem::path previous_;
  RunIdentity identity_;
  std::uint64_t saved_step_ = 0;
  Seconds saved_at_{};
  std::unique_ptr<CheckpointWriter> writer_;  // nothing: no checkpoints
};

}  // namespace longhaul::apps
