#include "apps/longhaul_torch/rank_checkpoints.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "longhaul/base/bytes.h"
#include "trainer/common_step.h"

namespace longhaul::apps {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

constexpr const char* kStep = "step";  // of the engine

Result<std::optional<State>> found_in(const std::filesystem::path& file) {
  Result<State> state = read_checkpoint(file);
  if (!state.ok() && state.error().code == ErrorCode::kNotFound) return std::optional<State>();
  if (!state.ok()) return state.error();
  if (const auto step = state->value<std::uint64_t>(kStep); !step.ok())
    return Error(step.error()).within(file.string());
  return std::optional(std::move(state).value());
}

// Precondition: found_in() has returned it.
std::uint64_t step_of(const std::optional<State>& found) {
  return found ? found->value<std::uint64_t>(kStep).value() : kNone;
}

}  // namespace

RankCheckpoints::RankCheckpoints(const CheckpointOptions& options)
    : options_(options), previous_(options.file) {
  if (are_written()) previous_.replace_extension(".previous.safetensors");
}

Status RankCheckpoints::open() {
  std::error_code failed;
  if (options_.file.has_parent_path())
    std::filesystem::create_directories(options_.file.parent_path(), failed);
  if (failed) return Error{ErrorCode::kIo, options_.file.string() + ": " + failed.message()};
  writer_ = std::make_unique<CheckpointWriter>(options_.file);
  return Done{};
}

Result<std::optional<State>> RankCheckpoints::agree(const trainer::AllGather& gather,
                                                    std::size_t size, bool resume) {
  LONGHAUL_TRY(are_written() ? open() : Done{});
  std::array<std::optional<State>, 2> own;
  if (resume && are_written()) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::optional<State> found = LONGHAUL_TRY(found_in(i == 0 ? options_.file : previous_));
      own[i] = std::move(found);
    }
  }
  ByteWriter told;
  for (const std::optional<State>& one : own) told.u64(step_of(one));
  const ByteBuffer bytes = std::move(told).release();
  const std::vector<ByteBuffer> all = LONGHAUL_TRY(gather(bytes));
  std::vector<std::vector<std::uint64_t>> steps(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    ByteReader in(all[rank]);
    while (in.remaining() >= sizeof(std::uint64_t))
      if (const std::uint64_t step = in.u64(); step != kNone) steps[rank].push_back(step);
  }
  const std::uint64_t common = LONGHAUL_TRY(trainer::newest_common_step(steps));
  const bool is_newest = step_of(own[0]) == common;
  const bool is_previous = !is_newest && step_of(own[1]) == common;
  LONGHAUL_TRY(are_written() ? drop_after(common, is_previous) : Done{});
  if (is_newest) return std::move(own[0]);
  if (is_previous) return std::move(own[1]);
  return std::optional<State>();
}

// Checkpoints of another course of the run must not be mixed with those of this one.
Status RankCheckpoints::drop_after(std::uint64_t step, bool is_step_previous) {
  std::error_code failed;
  if (is_step_previous) {
    std::filesystem::rename(previous_, options_.file, failed);
  } else if (step == 0) {
    std::filesystem::remove(options_.file, failed);
    if (!failed) std::filesystem::remove(previous_, failed);
  }
  if (failed) return Error{ErrorCode::kIo, options_.file.string() + ": " + failed.message()};
  return Done{};
}

Status RankCheckpoints::check(const State& checkpoint) const {
  Status fits = check_identity(identity_, checkpoint);
  if (fits.ok()) return fits;
  Error error = std::move(fits).error().within(options_.file.string());
  error.message += "; move it away, or name another place with --checkpoint";
  return error;
}

bool RankCheckpoints::is_due(std::uint64_t step, Seconds now, std::uint64_t kept_by_all) const {
  if (!writer_ || step <= saved_step_ || kept_by_all < saved_step_) return false;
  return options_.steps > 0 ? step >= saved_step_ + options_.steps
                            : now - saved_at_ >= options_.time;
}

Status RankCheckpoints::write(State state, std::uint64_t step, Seconds now) {
  saved_step_ = step;
  saved_at_ = now;
  save_identity(identity_, state);
  std::error_code failed;
  if (std::filesystem::exists(options_.file, failed))
    std::filesystem::rename(options_.file, previous_, failed);
  if (failed) return Error{ErrorCode::kIo, options_.file.string() + ": " + failed.message()};
  writer_->start(std::move(state));
  return Done{};
}

std::optional<Result<std::uint64_t>> RankCheckpoints::take_outcome() {
  return writer_ ? writer_->take_outcome() : std::nullopt;
}

}  // namespace longhaul::apps
