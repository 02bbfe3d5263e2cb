#include "longhaul/hub/journal.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/file.h"
#include "longhaul/hub/journal_names.h"
#include "longhaul/hub/round_log.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostRunBytes = std::size_t{1} << 30;
constexpr const char* kRunName = "run.safetensors";
constexpr const char* kRunCopyName = "run-copy.safetensors";
constexpr std::size_t kMostModels = 16;
constexpr std::size_t kFewestBytes = std::size_t{16} << 20;
constexpr std::size_t kLogsPerSnapshot = 4;  // in bytes: else large models write little else

// As a stream writes it. The payload holds the bytes.
std::string_view text_of(const CheckedPayload& payload) {
  if (payload.empty()) return {};
  const ByteBuffer& bytes = *payload.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// One snapshot stays beside the new one, with the logs that follow it: if the new one turns out to
// be damaged, nothing is lost. So does every log of rounds that are still at hand, from `needed`
// on: those who are behind need them, however often the hub is killed.
void remove_old(const std::filesystem::path& directory, std::uint64_t needed) {
  std::error_code failure;
  const std::vector<std::uint64_t> snapshots = snapshots_in(directory);
  const std::size_t gone = snapshots.size() > 2 ? snapshots.size() - 2 : 0;
  for (std::size_t i = 0; i < gone; ++i)
    std::filesystem::remove(directory / snapshot_name(snapshots[i]), failure);
  if (!snapshots.empty()) needed = std::min(needed, snapshots[gone]);
  const std::vector<std::uint64_t> logs = logs_in(directory);
  for (std::size_t i = 0; i + 1 < logs.size() && logs[i + 1] <= needed; ++i)
    std::filesystem::remove(directory / log_name(logs[i]), failure);
}

// Nothing, if there is no such file.
Result<std::optional<RunRecord>> read_run_file(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::optional<RunRecord>();
  const Result<ByteBuffer> bytes = read_file(path, kMostRunBytes);
  if (!bytes.ok()) return bytes.error();
  Result<State> state = state_from_bytes(*bytes);
  if (!state.ok()) return std::move(state).error().within(path.string());
  const auto id = state->value<std::uint64_t>("run");
  const auto task = state->value<std::uint64_t>("task");
  const auto names = state->value<std::vector<std::string>>("names");
  const auto slots = state->value<std::vector<std::uint64_t>>("slots");
  if (!id.ok() || !task.ok() || !names.ok() || !slots.ok() || names->size() != slots->size())
    return Error{ErrorCode::kCorruptPayload, path.string() + ": not the record of a run"};
  RunRecord run{.id = *id, .task = *task};
  for (std::size_t i = 0; i < names->size(); ++i) run.slots[(*names)[i]] = (*slots)[i];
  if (state->values.contains("last_step")) {
    const auto last_step = state->value<std::uint64_t>("last_step");
    if (!last_step.ok()) return Error(last_step.error()).within(path.string());
    run.last_step = *last_step;
  }
  return std::optional(std::move(run));
}

}  // namespace

void remove_unfinished(const std::filesystem::path& directory) {
  for (const char* start : {"snapshot", "rounds"}) remove_unfinished_writes(directory, start);
}

JournalOptions limits_for_model(JournalOptions limits, std::size_t elements, std::size_t parts) {
  limits.rounds *= parts;
  limits.log_rounds *= parts;
  const std::size_t models = kMostModels * sizeof(float) * elements;
  limits.bytes = std::min(limits.bytes, std::max(models, kFewestBytes));
  return limits;
}

const Contributor* JournalRound::contributor(std::size_t slot) const {
  const auto found = std::ranges::find(contributors, slot, &Contributor::slot);
  return found == contributors.end() ? nullptr : &*found;
}

Status Journal::keep_in(const std::filesystem::path& directory, std::uint64_t run, State state,
                        RoundId next) {
  Status written = settle();
  if (!written.ok()) return written;
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  const std::uint64_t step = next.step;
  const auto first_at_hand = [&](RoundId from) {
    return std::ranges::lower_bound(recent_, from, {}, &JournalRound::id);
  };
  const auto number_at = [&](auto round) {
    return round == recent_.end() ? closed() : round->number;
  };
  const auto oldest = first_at_hand({.step = step});
  std::string begin = log_header(run, number_at(oldest));
  for (auto round = oldest; round != recent_.end(); ++round) {
    begin += record_start(run, *round);
    begin += text_of(round->mean);
  }
  log_rounds_ = static_cast<std::size_t>(recent_.end() - oldest);
  log_bytes_ = begin.size();
  // The log first, and whole: a snapshot that is there always has its log, also if a hub is killed
  // here that goes on from a snapshot of this very step.
  const std::filesystem::path path = directory / log_name(step);
  written = write_file_atomically(path, std::as_bytes(std::span(begin)));
  if (!written.ok()) return written;
  log_ = std::ofstream(path, std::ios::binary | std::ios::app);
  if (!log_) return Error{ErrorCode::kIo, path.string() + ": cannot write"};
  directory_ = directory;
  run_ = run;
  snapshot_bytes_ = 0;
  for (const auto& [name, values] : state.tensors) snapshot_bytes_ += values.size() * sizeof(float);
  state.values[kSnapshotRun] = run;
  state.values[kSnapshotStep] = step;
  state.values[kRoundsMerged] = number_at(first_at_hand(next));
  state.values[kRoundsClosed] = closed();
  const std::uint64_t needed = recent_.empty() ? step : recent_.front().id.step;
  auto kept_state = std::make_shared<const State>(std::move(state));
  snapshot_ =
      std::async(std::launch::async, [directory, state = std::move(kept_state), step, needed] {
        Status kept = write_rope_atomically(directory / snapshot_name(step), to_rope(state));
        if (kept.ok()) remove_old(directory, needed);
        return kept;
      });
  return Done{};
}

Status Journal::settle() { return snapshot_.valid() ? snapshot_.get() : Status(Done{}); }

Result<std::optional<RunRecord>> Journal::read_run(const std::filesystem::path& directory) {
  std::optional<RunRecord> run;
  std::vector<std::string> notes;
  std::vector<std::filesystem::path> damaged;
  for (const char* name : {kRunName, kRunCopyName}) {
    const std::filesystem::path path = directory / name;
    Result<std::optional<RunRecord>> one = read_run_file(path);
    if (one.ok() && one->has_value()) {
      if (!run) run = std::move(**one);
      continue;
    }
    if (!one.ok() && one.error().code != ErrorCode::kCorruptPayload) return one;
    notes.push_back(one.ok() ? path.string() + ": missing" : one.error().message);
    if (!one.ok()) damaged.push_back(path);
  }
  if (run && !notes.empty())
    run->note = notes.front() + "; its other copy is whole: nothing is lost";
  if (run) {
    run->damaged = std::move(damaged);
    return run;
  }
  if (damaged.empty() && !has_files(directory)) return run;
  return Error{ErrorCode::kCorruptPayload,
               notes[0] + ". " + notes[1] +
                   ". So nobody knows which replica had which slot, and this run cannot go on. "
                   "Nothing was changed. Restore one of the two from a backup; `longhaul export` "
                   "still reads each snapshot-*.safetensors here"};
}

bool Journal::has_files(const std::filesystem::path& directory) {
  return !snapshots_in(directory).empty() || !logs_in(directory).empty();
}

Status Journal::write_run(const std::filesystem::path& directory, const RunRecord& run) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  std::vector<std::string> names;
  std::vector<std::uint64_t> slots;
  for (const auto& [name, slot] : run.slots) {
    names.push_back(name);
    slots.push_back(slot);
  }
  State state;
  state.values = {{"run", run.id}, {"task", run.task}, {"names", names}, {"slots", slots}};
  if (run.last_step) state.values["last_step"] = *run.last_step;
  const ByteBuffer bytes = to_bytes(state);
  Status written = write_file_atomically(directory / kRunName, bytes);
  return written.ok() ? write_file_atomically(directory / kRunCopyName, bytes) : written;
}

Status Journal::log(const JournalRound& round) {
  if (directory_.empty()) return Done{};
  if (snapshot_.valid() &&
      snapshot_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    Status written = settle();
    if (!written.ok()) return written;
  }
  const std::string start = record_start(run_, round);
  log_ << start << text_of(round.mean) << text_of(round.whole) << std::flush;
  if (!log_) return Error{ErrorCode::kIo, directory_.string() + ": cannot write the journal"};
  ++log_rounds_;
  log_bytes_ += start.size() + round.mean.size() + round.whole.size();
  return Done{};
}

void Journal::add(JournalRound round, std::uint64_t needed) {
  LONGHAUL_CHECK(round.id >= end());
  LONGHAUL_CHECK(round.from <= end());
  LONGHAUL_CHECK_EQ(round.number, closed());
  recent_bytes_ += round.mean.size();
  recent_.push_back(std::move(round));
  trim(needed);
}

void Journal::trim(std::uint64_t needed) {
  const auto is_full = [&] {
    return recent_.size() > limits_.rounds || (recent_bytes_ > limits_.bytes && recent_.size() > 1);
  };
  while (is_full() && recent_.front().id.step < needed) {
    recent_bytes_ -= recent_.front().mean.size();
    complete_from_ = after(recent_.front().id);
    closed_before_ = recent_.front().number + 1;
    recent_.pop_front();
  }
}

Journal Journal::at_hand() const {
  Journal journal(limits_, complete_from_, closed_before_);
  journal.recent_ = recent_;
  journal.recent_bytes_ = recent_bytes_;
  return journal;
}

bool Journal::wants_snapshot() const {
  const std::size_t most_bytes = std::max(limits_.log_bytes, kLogsPerSnapshot * snapshot_bytes_);
  return !directory_.empty() && (log_rounds_ >= limits_.log_rounds || log_bytes_ >= most_bytes);
}

std::optional<Contribution> Journal::last_of(std::size_t slot, RoundId from) const {
  for (auto round = recent_.rbegin(); round != recent_.rend() && round->id >= from; ++round) {
    if (const Contributor* own = round->contributor(slot))
      return Contribution{.round = round->id, .attendance = own->attendance};
  }
  return std::nullopt;
}

const JournalRound* Journal::first_from(RoundId round) const {
  const auto found = std::ranges::lower_bound(recent_, round, {}, &JournalRound::id);
  return found == recent_.end() ? nullptr : &*found;
}

}  // namespace longhaul
