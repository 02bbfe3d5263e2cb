// The rounds that have closed: the last ones at hand for those who missed them, and on disk what a
// hub needs to go on after it was killed.
//
// On disk: snapshot files of the shared state and, for each, a log of the rounds that closed after
// it. A round is in the log before anyone is told of it. A snapshot is written beside the work:
// until it is there, the one before it and both logs tell the same. All of it has checksums:
// docs/file_formats.md.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/payload.h"
#include "longhaul/round/contribution.h"
#include "longhaul/round/plan.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

// One whose update is in a mean.
struct Contributor {
  std::size_t slot = 0;
  std::uint64_t digest = 0;  // of its payload
  Attendance attendance;
  bool operator==(const Contributor&) const = default;
};

// A round as the journal keeps it.
struct JournalRound {
  RoundId id;
  RoundId from;              // no other round closed from this one on, up to its own
  std::uint64_t number = 0;  // of all rounds, in the order in which they closed, from 0 on
  std::size_t elements = 0;  // of its part
  std::vector<Contributor> contributors;
  std::optional<Plan> next_plan;
  CheckedPayload mean;
  // Before it was compressed, if it was; else empty. Not at hand, only on disk.
  CheckedPayload whole;

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
  // Of the two files that it was read from. Not kept.
  std::string note{};                            // one is damaged or missing
  std::vector<std::filesystem::path> damaged{};  // for set_aside()
};

// How much is kept at hand for replicas that come back. Rounds are of the whole model: of one in
// parts there are as many times more.
struct JournalOptions {
  std::size_t rounds = 512;
  std::size_t bytes = std::size_t{256} << 20;
  std::size_t log_rounds = 256;                   // then a new snapshot and a new log begin
  std::size_t log_bytes = std::size_t{64} << 20;  // and some times the snapshot
};

// The entries that a journal adds to the values of a snapshot: its run, the step it is named after,
// the number of the first round that is not merged, and how many had closed.
inline constexpr const char* kSnapshotRun = "journal.run";
inline constexpr const char* kSnapshotStep = "journal.step";
inline constexpr const char* kRoundsMerged = "journal.rounds_merged";
inline constexpr const char* kRoundsClosed = "journal.rounds_closed";

// For whoever has missed more means than a few models are long, the model is the shorter way: more
// is not kept at hand for a model of so many elements.
JournalOptions limits_for_model(JournalOptions limits, std::size_t elements, std::size_t parts);

// Files that a hub was killed in the middle of. Precondition: no other hub has this directory.
void remove_unfinished(const std::filesystem::path& directory);

// Before a hub goes on with what it has read. Cuts off ends that were not written to the end, and
// gives damaged files a name that ends in ".damaged", so that nothing overwrites them.
Status cut_off(const std::vector<std::pair<std::filesystem::path, std::size_t>>& torn);
Status set_aside(const std::vector<std::filesystem::path>& damaged);
// When a new snapshot is there: a log has no other name any more.
void remove_set_aside(const std::vector<std::filesystem::path>& damaged);

class Journal {
 public:
  // In memory only. Holds every round that closed from `complete_from` on; so many have closed
  // before.
  Journal() = default;
  explicit Journal(const JournalOptions& limits, RoundId complete_from = {},
                   std::uint64_t closed_before = 0)
      : limits_(limits), complete_from_(complete_from), closed_before_(closed_before) {}

  // The remains of an earlier hub in a directory: the state, and the rounds that closed after it.
  struct Left {
    State state;
    std::vector<JournalRound> rounds;  // without a gap; also those before, as far as they are there
    std::uint64_t closed = 0;          // rounds that had closed after the last of them
    // Rounds that had closed later and that no state can be put together with: what is damaged, and
    // how many are lost. Empty: none.
    std::string loss;
    std::vector<std::string> notes;              // damage that has cost nothing, a sentence each
    std::vector<std::filesystem::path> damaged;  // for set_aside()
    std::vector<std::pair<std::filesystem::path, std::size_t>> torn;  // and for cut_off()
  };
  // Nothing, if the directory holds none. Nothing is written. If there are several snapshots, it
  // takes one that loses the fewest rounds. An error: without a snapshot that can be read there is
  // no state.
  static Result<std::optional<Left>> read(const std::filesystem::path& directory,
                                          std::uint64_t run);
  static bool has_files(const std::filesystem::path& directory);

  // From now on every round of this run goes to `directory` too, after a snapshot of `state`, whose
  // next round is `next`. Both files are named after its step. Rounds at hand of that step and
  // later ones are in the new log from the beginning: an earlier snapshot of the same step needs
  // them. If the snapshot cannot be written, the next log() or keep_in() says so.
  Status keep_in(const std::filesystem::path& directory, std::uint64_t run, State state,
                 RoundId next);
  // Waits until it is written.
  Status settle();

  // Nothing, if the directory holds none. It is kept twice: the copy serves if one is damaged.
  static Result<std::optional<RunRecord>> read_run(const std::filesystem::path& directory);
  static Status write_run(const std::filesystem::path& directory, const RunRecord& run);

  // A round has closed: on disk before anyone is told, if it is kept there.
  Status log(const JournalRound& round);
  // And at hand, in order. Rounds of the step `needed` and later ones stay, whatever the limits: a
  // snapshot needs them.
  void add(JournalRound round, std::uint64_t needed);
  // Is it time for a new snapshot? Then keep_in() begins a new log and old files go.
  [[nodiscard]] bool wants_snapshot() const;

  // The first round at hand that is this one or a later one; nothing, if there is none.
  [[nodiscard]] const JournalRound* first_from(RoundId round) const;
  // The last update of this slot that is in this round or a later one.
  [[nodiscard]] std::optional<Contribution> last_of(std::size_t slot, RoundId from) const;
  // Is every round that closed from this one on at hand?
  [[nodiscard]] bool reaches_back_to(RoundId round) const { return round >= complete_from_; }
  // Behind the last round.
  [[nodiscard]] RoundId end() const {
    return recent_.empty() ? complete_from_ : after(recent_.back().id);
  }
  // How many rounds have closed: the number of the next one.
  [[nodiscard]] std::uint64_t closed() const {
    return recent_.empty() ? closed_before_ : recent_.back().number + 1;
  }
  // The rounds at hand, in memory only. The means are shared.
  [[nodiscard]] Journal at_hand() const;
  [[nodiscard]] std::size_t rounds() const { return recent_.size(); }
  [[nodiscard]] std::size_t bytes() const { return recent_bytes_; }

 private:
  void trim(std::uint64_t needed);

  JournalOptions limits_;
  std::deque<JournalRound> recent_;
  RoundId complete_from_;
  std::uint64_t closed_before_ = 0;
  std::size_t recent_bytes_ = 0;
  std::filesystem::path directory_;  // empty: in memory only
  std::uint64_t run_ = 0;
  std::ofstream log_;
  std::size_t log_rounds_ = 0;
  std::size_t log_bytes_ = 0;
  std::size_t snapshot_bytes_ = 0;
  std::future<Status> snapshot_;  // being written
};

}  // namespace longhaul
