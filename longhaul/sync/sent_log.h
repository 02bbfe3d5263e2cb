// The updates of a replica, written to a file before they are sent.
//
// A replica whose local step is the caller's cannot do its steps again when it resumes from a
// checkpoint. This file tells it which updates it has sent since, so none of them is sent twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "longhaul/exchange/exchange.h"

namespace longhaul {

// Keeps the updates that a replica has sent, on disk.
// Survives the end of the process, not always that of the machine. Updates that are missing at its
// end cost the residual (see stand_at()), and never count twice.
class SentLog final : public Exchange {
 public:
  // Begins the file anew with `known`: what read() has found, or nothing for a run that begins.
  // `exchange` outlives it.
  SentLog(std::filesystem::path file, const SentUpdates& known, Exchange& exchange);

  // Up to the first record that is damaged or cut off; no file: none.
  static Result<SentUpdates> read(const std::filesystem::path& file);

  void submit(Update update) override;
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    return exchange_.collect(round, deadline);
  }

  // A checkpoint of this step is on disk: it has all that was sent before.
  void forget_before(std::uint64_t step);

  // The first failure of the disk; nothing is written after it.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void begin(const SentUpdates& known);

  const std::filesystem::path file_;
  Exchange& exchange_;
  std::ofstream out_;
  std::optional<RoundId> last_;  // that is in the file
  Status status_ = Done{};
};

}  // namespace longhaul
