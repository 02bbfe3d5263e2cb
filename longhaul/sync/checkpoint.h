// Checkpoints as files: of which run and replica they are, and a thread that writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/base/mailbox.h"
#include "longhaul/base/mutex.h"
#include "longhaul/base/result.h"
#include "longhaul/base/state.h"

namespace longhaul {

// Facts that must be equal for a checkpoint to be of use: ("seed", "1"), in the order in which
// people are told what differs.
using RunIdentity = std::vector<std::pair<std::string, std::string>>;

void save_identity(const RunIdentity& run, State& state);
// An error names the first thing that differs.
Status check_identity(const RunIdentity& run, const State& state);

// kNotFound: there is none. Damage is an error, whichever byte it is in.
Result<State> read_checkpoint(const std::filesystem::path& file);

// Writes checkpoints in the background, each in place of the one before. Training waits for the
// copy of its state, and not for the disk.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(std::filesystem::path file);
  // Writes first what was handed over before.
  ~CheckpointWriter() { states_.close(); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  [[nodiscard]] bool is_idle();
  // Precondition: is_idle().
  void start(State state);
  // Waits until it is written.
  Status write(State state);

  // The outcome of the writes since the last call: the step of the last one.
  [[nodiscard]] std::optional<Result<std::uint64_t>> take_outcome();

  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  void run();
  void wait_until_idle();

  const std::filesystem::path file_;
  Mailbox<State> states_{1};
  Mutex mutex_;
  CondVar idle_;
  bool is_busy_ GUARDED_BY(mutex_) = false;
  std::optional<Result<std::uint64_t>> outcome_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul
