// How a hub finds again what an earlier one left, with damage and without.
#include <algorithm>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "longhaul/base/file.h"
#include "longhaul/hub/journal.h"
#include "longhaul/hub/journal_names.h"
#include "longhaul/hub/round_log.h"

namespace longhaul {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t kMostFileBytes = std::size_t{1} << 40;
constexpr const char* kAside = ".damaged";

// The state of a snapshot that has all of its numbers.
Result<State> read_snapshot(const Path& path, std::uint64_t run) {
  const Result<ByteBuffer> bytes = read_file(path, kMostFileBytes);
  if (!bytes.ok()) return bytes.error();
  Result<State> state = state_from_bytes(*bytes);
  const std::string name = path.filename().string();
  if (!state.ok()) return std::move(state).error().within(name);
  const auto own = state->value<std::uint64_t>(kSnapshotRun);
  const auto step = state->value<std::uint64_t>(kSnapshotStep);
  const auto merged = state->value<std::uint64_t>(kRoundsMerged);
  const auto closed = state->value<std::uint64_t>(kRoundsClosed);
  if (!own.ok() || !step.ok() || !merged.ok() || !closed.ok() || *merged > *closed)
    return corrupt_payload(name + ": not a snapshot");
  if (*own != run) return corrupt_payload(name + ": of another run");
  return state;
}

// Precondition: the state is of read_snapshot().
std::uint64_t number_in(const State& snapshot, const char* name) {
  return snapshot.value<std::uint64_t>(name).value();
}

struct Logs {
  std::vector<LogFile> files;  // in the order of their names, without their rounds
  std::map<std::uint64_t, JournalRound> rounds;  // by number
  std::uint64_t known_end = 0;                   // all with lower numbers have closed
};

// The same round may be in two logs. Only the first of them has its mean as it was before it was
// compressed.
void add_round(JournalRound round, Logs& logs) {
  const std::uint64_t number = round.number;
  JournalRound& kept = logs.rounds.try_emplace(number, round).first->second;
  if (kept.whole.empty() && !round.whole.empty()) kept = std::move(round);
}

Result<Logs> read_logs(const Path& directory, std::uint64_t run) {
  Logs logs;
  for (const std::uint64_t step : logs_in(directory)) {
    const Path path = directory / log_name(step);
    const Result<ByteBuffer> bytes = read_file(path, kMostFileBytes);
    if (!bytes.ok()) return bytes.error();
    LogFile file = read_log(*bytes, run);
    file.path = path;
    for (JournalRound& round : file.rounds) add_round(std::move(round), logs);
    file.rounds.clear();
    logs.known_end = std::max({logs.known_end, file.first.value_or(0), file.end});
    for (const LogDamage& damage : file.damage) {
      if (!damage.is_torn && damage.number)
        logs.known_end = std::max(logs.known_end, *damage.number + 1);
    }
    logs.files.push_back(std::move(file));
  }
  return logs;
}

// The first round from this one on that cannot be read.
std::uint64_t reach_from(std::uint64_t number, const Logs& logs) {
  while (logs.rounds.contains(number)) ++number;
  return number;
}

std::string rounds_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " round" : " rounds");
}

std::string note_of(const LogFile& file, const LogDamage& damage) {
  std::string text = file.path.filename().string();
  const std::string bytes = std::to_string(damage.bytes);
  if (damage.is_torn) {
    text += ": its last " + bytes + " bytes are a record that was not written to the end";
    if (damage.round)
      text += " (step " + std::to_string(damage.round->step) + ", part " +
              std::to_string(damage.round->part) + ')';
    return text + "; they are left out: nobody was told of that round";
  }
  return text + ": damaged: " + bytes + " bytes from byte " + std::to_string(damage.begin) +
         " on cannot be read";
}

std::vector<std::string> notes_of(const Logs& logs) {
  std::vector<std::string> notes;
  for (const LogFile& file : logs.files) {
    for (const LogDamage& damage : file.damage) notes.push_back(note_of(file, damage));
    if (!file.first && file.bytes < kLogHeaderBytes)
      notes.push_back(file.path.filename().string() + ": damaged: it is shorter than its header");
  }
  return notes;
}

// How many rounds that the snapshot has merged are missing among those before it.
std::uint64_t gaps_before(std::uint64_t merged, const Logs& logs) {
  std::uint64_t oldest = merged;
  if (!logs.rounds.empty()) oldest = std::min(oldest, logs.rounds.begin()->first);
  for (const LogFile& file : logs.files) oldest = std::min(oldest, file.first.value_or(oldest));
  std::uint64_t gaps = 0;
  for (std::uint64_t number = oldest; number < merged; ++number)
    gaps += logs.rounds.contains(number) ? 0 : 1;
  return gaps;
}

// A snapshot always has its log.
std::string missing_log(std::uint64_t newest_snapshot, const std::vector<std::uint64_t>& logs) {
  if (!logs.empty() && logs.back() >= newest_snapshot) return {};
  return log_name(newest_snapshot) + " is missing";
}

// Which rounds had closed from `reach` on, as far as anyone can tell.
std::string loss_of(std::uint64_t reach, const Logs& logs, const std::string& missing) {
  std::uint64_t unread = 0;
  for (std::uint64_t number = reach; number < logs.known_end; ++number)
    unread += logs.rounds.contains(number) ? 0 : 1;
  const std::uint64_t read = logs.known_end > reach ? logs.known_end - reach - unread : 0;
  const bool hides = !missing.empty() || (!logs.files.empty() && logs.files.back().hides_rounds());
  if (unread == 0 && !hides) return {};
  std::string text = missing.empty() ? "" : missing + ". ";
  if (unread == 0) return text + "Rounds that had closed may be lost, nobody can tell how many";
  text += (hides ? "At least " : "") + rounds_text(unread) + " that had closed " +
          (unread == 1 ? "is" : "are") + " lost";
  if (read > 0)
    text += "; " + rounds_text(read) + " after the first of them can be read, and not be merged";
  return text;
}

void note_aside(const Logs& logs, std::uint64_t reach, std::vector<Path>& damaged) {
  for (const LogFile& file : logs.files) {
    if (file.is_damaged() || file.end > reach || file.first.value_or(0) > reach)
      damaged.push_back(file.path);
  }
}

std::vector<std::pair<Path, std::size_t>> torn_in(const Logs& logs) {
  std::vector<std::pair<Path, std::size_t>> torn;
  for (const LogFile& file : logs.files) {
    if (!file.damage.empty() && file.damage.back().is_torn)
      torn.emplace_back(file.path, file.damage.back().begin);
  }
  return torn;
}

// Those that follow on the snapshot, and those before it up to the first that is missing.
std::vector<JournalRound> rounds_around(std::uint64_t merged, Logs& logs) {
  std::uint64_t first = merged;
  while (first > 0 && logs.rounds.contains(first - 1)) --first;
  std::vector<JournalRound> rounds;
  for (std::uint64_t number = first; logs.rounds.contains(number); ++number)
    rounds.push_back(std::move(logs.rounds.at(number)));
  return rounds;
}

Error no_snapshot(const Path& directory, const std::vector<std::string>& why) {
  std::string text = directory.string() + ": no snapshot can be read, so there is no model: ";
  for (const std::string& one : why) text += one + ". ";
  if (why.empty()) text += "none is there, only rounds that closed after it. ";
  return {ErrorCode::kCorruptPayload,
          text +
              "Nothing was changed. Restore a snapshot from a backup; `longhaul export` reads the "
              "model of a replica's checkpoint"};
}

// Where a damaged file is kept, or is to be kept.
Path aside_of(const Path& path) {
  std::error_code failure;
  for (int i = 1;; ++i) {
    Path aside = path.string() + kAside + (i == 1 ? "" : '-' + std::to_string(i));
    if (!std::filesystem::exists(aside, failure) ||
        std::filesystem::equivalent(aside, path, failure))
      return aside;
  }
}

}  // namespace

Result<std::optional<Journal::Left>> Journal::read(const Path& directory, std::uint64_t run) {
  const std::vector<std::uint64_t> snapshots = snapshots_in(directory);
  Result<Logs> logs = read_logs(directory, run);
  if (!logs.ok()) return logs.error();
  const auto is_empty = [](const LogFile& log) { return log.end == 0 && !log.is_damaged(); };
  if (snapshots.empty() && std::ranges::all_of(logs->files, is_empty)) return std::optional<Left>();
  Left left;
  std::optional<State> best;
  std::vector<std::string> unread;
  for (const std::uint64_t step : std::vector(snapshots.rbegin(), snapshots.rend())) {
    const Path path = directory / snapshot_name(step);
    Result<State> snapshot = read_snapshot(path, run);
    if (!snapshot.ok()) {
      if (snapshot.error().code != ErrorCode::kCorruptPayload)
        return std::move(snapshot).error().within(directory.string());
      unread.push_back(snapshot.error().message);
      left.damaged.push_back(path);
      continue;
    }
    if (const std::uint64_t named = number_in(*snapshot, kSnapshotStep); named != step)
      left.notes.push_back(snapshot_name(step) + ": holds the state before round " +
                           std::to_string(named));
    logs->known_end = std::max(logs->known_end, number_in(*snapshot, kRoundsClosed));
    const std::uint64_t reach = reach_from(number_in(*snapshot, kRoundsMerged), *logs);
    if (!best || reach > left.closed) {
      best = std::move(snapshot).value();
      left.closed = reach;
    }
    if (reach >= logs->known_end) break;
  }
  if (!best) return no_snapshot(directory, unread);
  const std::uint64_t merged = number_in(*best, kRoundsMerged);
  for (const std::string& why : unread)
    left.notes.push_back(why + "; the snapshot before it and the rounds since serve in its place");
  for (std::string& note : notes_of(*logs)) left.notes.push_back(std::move(note));
  if (const std::uint64_t gaps = gaps_before(merged, *logs); gaps > 0)
    left.notes.push_back(rounds_text(gaps) +
                         " that the snapshot holds already cannot be read: replicas that miss them "
                         "take the hub's state");
  left.loss = loss_of(left.closed, *logs, missing_log(snapshots.back(), logs_in(directory)));
  if (!left.loss.empty()) note_aside(*logs, left.closed, left.damaged);
  left.torn = torn_in(*logs);
  left.rounds = rounds_around(merged, *logs);
  left.state = std::move(*best);
  return std::optional(std::move(left));
}

Status cut_off(const std::vector<std::pair<Path, std::size_t>>& torn) {
  for (const auto& [path, bytes] : torn) {
    std::error_code failure;
    std::filesystem::resize_file(path, bytes, failure);
    if (failure)
      return Error{ErrorCode::kIo, path.string() + ": cannot cut it off: " + failure.message()};
  }
  return Done{};
}

Status set_aside(const std::vector<Path>& damaged) {
  for (const Path& path : damaged) {
    const Path aside = aside_of(path);
    std::error_code failure;
    if (std::filesystem::exists(aside, failure)) continue;  // by a hub that was killed then
    // Rounds in a log are needed until a new snapshot holds them. For other files, and where a disk
    // knows no links, the first name goes at once: a damaged snapshot must not count as one.
    const bool is_log = path.extension() == ".log";
    if (is_log) std::filesystem::create_hard_link(path, aside, failure);
    if (!is_log || failure) std::filesystem::rename(path, aside, failure);
    if (failure)
      return Error{ErrorCode::kIo, aside.string() + ": cannot keep " + path.string() +
                                       " there: " + failure.message()};
  }
  return Done{};
}

void remove_set_aside(const std::vector<Path>& damaged) {
  for (const Path& path : damaged) {
    std::error_code failure;
    const Path aside = aside_of(path);
    if (std::filesystem::equivalent(path, aside, failure)) std::filesystem::remove(path, failure);
  }
}

}  // namespace longhaul
