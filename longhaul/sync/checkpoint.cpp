#include "longhaul/sync/checkpoint.h"

#include <iterator>
#include <limits>
#include <set>
#include <sstream>

#include "longhaul/base/check.h"
#include "longhaul/base/file.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostCheckpointBytes = std::numeric_limits<std::size_t>::max() / 2;

// The words of a list that another one lacks: of long ones, what differs.
std::string words_not_in(const std::string& other, const std::string& list) {
  std::istringstream others(other);
  const std::set<std::string> known(std::istream_iterator<std::string>(others), {});
  std::istringstream words(list);
  std::string rest;
  for (std::string word; words >> word;) {
    if (!known.contains(word)) rest += (rest.empty() ? "" : " ") + word;
  }
  return rest;
}

std::string identity_name(const std::string& what) { return "run." + what; }

}  // namespace

void save_identity(const RunIdentity& run, State& state) {
  for (const auto& [what, value] : run) state.values[identity_name(what)] = value;
}

Status check_identity(const RunIdentity& run, const State& state) {
  for (const auto& [what, value] : run) {
    const Result<std::string> saved = state.value<std::string>(identity_name(what));
    if (!saved.ok())
      return Error{ErrorCode::kMismatch, "it does not say of which " + what + " it is"};
    if (*saved == value) continue;
    std::string why = "it is of another run: " + what;
    why.append(" '").append(words_not_in(value, *saved));
    why.append("', here '").append(words_not_in(*saved, value)).append("'");
    return Error{ErrorCode::kMismatch, std::move(why)};
  }
  return Done{};
}

Result<State> read_checkpoint(const std::filesystem::path& file) {
  const Result<ByteBuffer> bytes = read_file(file, kMostCheckpointBytes);
  if (!bytes.ok()) return bytes.error();
  Result<State> state = state_from_bytes(*bytes);
  if (state.ok()) return state;
  Error error = std::move(state).error().within(file.string());
  error.message += "; nothing of it was loaded: move it away to go on without it";
  return error;
}

CheckpointWriter::CheckpointWriter(std::filesystem::path file)
    : file_(std::move(file)), thread_([this] { run(); }) {}

void CheckpointWriter::run() {
  remove_unfinished_writes(file_.parent_path(), file_.filename().string() + '.');
  while (std::optional<State> taken = states_.pop()) {
    auto state = std::make_shared<const State>(std::move(*taken));
    const auto step = state->value<std::uint64_t>("step");
    LONGHAUL_CHECK(step.ok());
    const Status written = write_rope_atomically(file_, to_rope(state));
    {
      const MutexLock lock(mutex_);
      is_busy_ = false;
      outcome_ = written.ok() ? Result<std::uint64_t>(*step) : written.error();
    }
    idle_.notify_all();
  }
}

bool CheckpointWriter::is_idle() {
  const MutexLock lock(mutex_);
  return !is_busy_;
}

void CheckpointWriter::wait_until_idle() {
  const MutexLock lock(mutex_);
  idle_.wait(mutex_, [this]() REQUIRES(mutex_) { return !is_busy_; });
}

void CheckpointWriter::start(State state) {
  {
    const MutexLock lock(mutex_);
    LONGHAUL_CHECK(!is_busy_);
    is_busy_ = true;
  }
  LONGHAUL_CHECK(states_.try_push(std::move(state)));
}

Status CheckpointWriter::write(State state) {
  wait_until_idle();
  start(std::move(state));
  wait_until_idle();
  const MutexLock lock(mutex_);
  if (!outcome_->ok()) return outcome_->error();
  return Done{};
}

std::optional<Result<std::uint64_t>> CheckpointWriter::take_outcome() {
  const MutexLock lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

}  // namespace longhaul
