// The rounds that have closed: the last ones at hand for those who missed them, and on disk what a
// hub needs to go on after it was killed.
//
// On disk: snapshot files of the shared state and, for each, a log of the rounds that closed after
// it. A round is in the log before anyone is told of it. A snapshot is written beside the work:
// until it is there, the one before it and both logs tell the same.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/round/attendance.h"
#include "longhaul/round/plan.h"
#include "longhaul/transport/cargo.h"

namespace longhaul {

// One whose update is in a mean.
struct Contributor {
  std::size_t slot = 0;
  std::uint64_t digest = 0;  // of its payload
  Attendance attendance;
  bool operator==(const Contributor&) const = default;
};

struct JournalRound {
  std::uint64_t step = 0;
  std::uint64_t from = 0;    // no other round closed from this step on, up to its own
  std::uint32_t part = 0;    // of the model
  std::size_t elements = 0;  // of that part
  std::vector<Contributor> contributors;
  std::optional<Plan> next_plan;
  SharedBytes mean;   // as one payload
  SharedBytes whole;  // before it was compressed, if it was; not at hand, only on disk

  // Nothing, if no update of this slot is in the mean.
  [[nodiscard]] const Contributor* contributor(std::size_t slot) const;
};

// Which run a directory is of.
struct RunRecord {
  std::uint64_t id = 0;    // never 0
  std::uint64_t task = 0;  // digest of what replicas are told to do
  // Contributors are slots, so a name keeps its own for the whole run.
  std::map<std::string, std::uint64_t> slots;
  std::optional<std::uint64_t> last_step{};  // of a run that has reached its target
};

// How much is kept at hand for replicas that come back.
struct JournalLimits {
  std::size_t rounds = 512;
  std::size_t bytes = std::size_t{256} << 20;
  std::size_t log_rounds = 256;                   // then a new snapshot and a new log begin
  std::size_t log_bytes = std::size_t{64} << 20;  // and some times the snapshot
  // The mean of a round, on disk: a record is one message of protobuf, which has less than 2 GiB.
  std::size_t mean_bytes = (std::size_t{2} << 30) - (std::size_t{16} << 20);
};

// For whoever has missed more means than a few models are long, the model is the shorter way: more
// is not kept at hand for a model of so many elements.
JournalLimits limits_for_model(JournalLimits limits, std::size_t elements);

// Files that a hub was killed in the middle of. Precondition: no other hub has this directory.
void remove_unfinished(const std::filesystem::path& directory);

class Journal {
 public:
  // In memory only. Holds every round that closed from `complete_from` on.
  Journal() = default;
  explicit Journal(const JournalLimits& limits, std::uint64_t complete_from = 0)
      : limits_(limits), complete_from_(complete_from) {}

  // What an earlier hub left in a directory: the state, and the rounds that closed after it.
  struct Left {
    State state;
    std::vector<JournalRound> rounds;
  };
  // Nothing, if the directory holds none. A log that ends in the middle of a round ends before it.
  static Result<std::optional<Left>> read(const std::filesystem::path& directory);

  // From now on every round goes to `directory` too, after a snapshot of `state`, whose next round
  // is `step`. Rounds at hand from that one on are in the new log from the beginning. If the
  // snapshot cannot be written, the next log() or keep_in() says so.
  Status keep_in(const std::filesystem::path& directory, State state, std::uint64_t step);
  // Waits until it is written.
  Status settle();

  // Nothing, if the directory holds none.
  static Result<std::optional<RunRecord>> read_run(const std::filesystem::path& directory);
  static Status write_run(const std::filesystem::path& directory, const RunRecord& run);

  // A round has closed: on disk before anyone is told, if it is kept there.
  Status log(const JournalRound& round);
  // And at hand, in order. Rounds from `needed` on stay, whatever the limits: a snapshot needs
  // them.
  void add(JournalRound round, std::uint64_t needed);
  // Is it time for a new snapshot? Then keep_in() begins a new log and old files go.
  [[nodiscard]] bool wants_snapshot() const;

  // The first round at hand of this step or a later one; nothing, if there is none.
  [[nodiscard]] const JournalRound* first_from(std::uint64_t step) const;
  // The last update of this slot that is in a round of this step or a later one.
  [[nodiscard]] std::optional<Contributed> last_of(std::size_t slot, std::uint64_t from) const;
  // Is every round that closed from this step on at hand?
  [[nodiscard]] bool reaches_back_to(std::uint64_t step) const { return step >= complete_from_; }
  // The step after that of the last round.
  [[nodiscard]] std::uint64_t end() const {
    return recent_.empty() ? complete_from_ : recent_.back().step + 1;
  }
  [[nodiscard]] std::size_t rounds() const { return recent_.size(); }
  [[nodiscard]] std::size_t bytes() const { return recent_bytes_; }

 private:
  void trim(std::uint64_t needed);

  JournalLimits limits_;
  std::deque<JournalRound> recent_;
  std::uint64_t complete_from_ = 0;
  std::size_t recent_bytes_ = 0;
  std::filesystem::path directory_;  // empty: in memory only
  std::ofstream log_;
  std::size_t log_rounds_ = 0;
  std::size_t log_bytes_ = 0;
  std::size_t snapshot_bytes_ = 0;
  std::future<Status> snapshot_;  // being written
};

}  // namespace longhaul
