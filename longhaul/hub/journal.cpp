#include "longhaul/hub/journal.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/file.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"
#include "proto/journal.pb.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostStateBytes = std::size_t{1} << 40;
constexpr const char* kRunName = "run.safetensors";
constexpr std::size_t kMostModels = 16;
constexpr std::size_t kFewestBytes = std::size_t{16} << 20;
constexpr std::uint32_t kRecordMagic = 0x4C485231;  // "LHR1"
constexpr std::size_t kRecordHeaderBytes = 16;      // magic, length, digest
constexpr std::size_t kLogsPerSnapshot = 4;         // in bytes: else large models write little else

// "snapshot-000000000042.safetensors" and "rounds-000000000042.log": what closed from round 42 on.
std::string numbered(const char* kind, std::uint64_t step, const char* ending) {
  const std::string digits = std::to_string(step);
  return std::string(kind) + '-' + std::string(digits.size() < 12 ? 12 - digits.size() : 0, '0') +
         digits + ending;
}
std::string snapshot_name(std::uint64_t step) { return numbered("snapshot", step, ".safetensors"); }
std::string log_name(std::uint64_t step) { return numbered("rounds", step, ".log"); }

// What numbered() made the name of, if it did.
std::optional<std::uint64_t> step_of(const std::string& name, const std::string& kind,
                                     const std::string& ending) {
  if (!name.starts_with(kind + '-') || !name.ends_with(ending)) return std::nullopt;
  const std::size_t first = kind.size() + 1;
  if (name.size() <= first + ending.size()) return std::nullopt;
  const std::string digits = name.substr(first, name.size() - first - ending.size());
  if (digits.size() > 19 ||
      !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return std::stoull(digits);
}

std::vector<std::uint64_t> steps_in(const std::filesystem::path& directory, const char* kind,
                                    const char* ending) {
  std::vector<std::uint64_t> steps;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failure)) {
    if (const auto step = step_of(entry.path().filename().string(), kind, ending))
      steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}
std::vector<std::uint64_t> snapshots_in(const std::filesystem::path& directory) {
  return steps_in(directory, "snapshot", ".safetensors");
}
std::vector<std::uint64_t> logs_in(const std::filesystem::path& directory) {
  return steps_in(directory, "rounds", ".log");
}

std::size_t bytes_of(const JournalRound& round) {
  return round.mean->size() + (round.whole ? round.whole->size() : 0);
}

std::string record_of(const JournalRound& round) {
  v1::JournalRound message;
  message.set_step(round.step);
  message.set_from(round.from);
  message.set_part(round.part);
  message.set_elements(round.elements);
  for (const Contributor& one : round.contributors) {
    message.add_contributors(static_cast<std::uint32_t>(one.slot));
    message.add_digests(one.digest);
    *message.add_attendance() = to_message(one.attendance);
  }
  if (round.next_plan) *message.mutable_next_plan() = to_message(*round.next_plan);
  message.set_mean(round.mean->data(), round.mean->size());
  if (round.whole) message.set_whole(round.whole->data(), round.whole->size());
  std::string body;
  LONGHAUL_CHECK(message.SerializeToString(&body));
  ByteWriter header;
  header.u32(kRecordMagic);
  header.u32(static_cast<std::uint32_t>(body.size()));
  header.u64(digest_of(std::as_bytes(std::span(body))));
  const ByteBuffer bytes = std::move(header).release();
  std::string record(bytes.size(), '\0');
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(record)).begin());
  return record + body;
}

SharedBytes shared_bytes(const std::string& text) {
  const ByteView bytes = std::as_bytes(std::span(text));
  return std::make_shared<const ByteBuffer>(bytes.begin(), bytes.end());
}

// The next record, if a whole and undamaged one is there.
std::optional<JournalRound> next_record(ByteReader& in) {
  if (in.remaining() < kRecordHeaderBytes || in.u32() != kRecordMagic) return std::nullopt;
  const std::uint32_t length = in.u32();
  const std::uint64_t digest = in.u64();
  if (in.remaining() < length) return std::nullopt;
  const ByteView body = in.bytes(length);
  v1::JournalRound message;
  if (digest_of(body) != digest ||
      !message.ParseFromArray(body.data(), static_cast<int>(body.size())))
    return std::nullopt;
  const int contributors = message.contributors_size();
  if (message.digests_size() != contributors || message.attendance_size() != contributors)
    return std::nullopt;
  JournalRound round{.step = message.step(),
                     .from = message.from(),
                     .part = message.part(),
                     .elements = message.elements()};
  for (int i = 0; i < contributors; ++i) {
    Result<Attendance> attendance = attendance_from(message.attendance(i), round.step);
    if (!attendance.ok()) return std::nullopt;
    round.contributors.push_back({.slot = message.contributors(i),
                                  .digest = message.digests(i),
                                  .attendance = std::move(attendance).value()});
  }
  if (message.has_next_plan()) {
    const Result<Plan> plan = plan_from(message.next_plan());
    if (!plan.ok()) return std::nullopt;
    round.next_plan = *plan;
  }
  round.mean = shared_bytes(message.mean());
  if (!message.whole().empty()) round.whole = shared_bytes(message.whole());
  return round;
}

// One snapshot stays beside the new one, and every log of rounds that are still at hand, from
// `needed` on: those who are behind need them, however often the hub is killed.
void remove_old(const std::filesystem::path& directory, std::uint64_t needed) {
  std::error_code failure;
  const std::vector<std::uint64_t> snapshots = snapshots_in(directory);
  for (std::size_t i = 0; i + 2 < snapshots.size(); ++i)
    std::filesystem::remove(directory / snapshot_name(snapshots[i]), failure);
  const std::vector<std::uint64_t> logs = logs_in(directory);
  for (std::size_t i = 0; i + 2 < logs.size() && logs[i + 1] <= needed; ++i)
    std::filesystem::remove(directory / log_name(logs[i]), failure);
}

}  // namespace

void remove_unfinished(const std::filesystem::path& directory) {
  for (const char* start : {"snapshot", "rounds"}) remove_unfinished_writes(directory, start);
}

JournalLimits limits_for_model(JournalLimits limits, std::size_t elements) {
  const std::size_t models = kMostModels * sizeof(float) * elements;
  limits.bytes = std::min(limits.bytes, std::max(models, kFewestBytes));
  return limits;
}

const Contributor* JournalRound::contributor(std::size_t slot) const {
  const auto found = std::ranges::find(contributors, slot, &Contributor::slot);
  return found == contributors.end() ? nullptr : &*found;
}

Result<std::optional<Journal::Left>> Journal::read(const std::filesystem::path& directory) {
  const std::vector<std::uint64_t> snapshots = snapshots_in(directory);
  if (snapshots.empty()) return std::optional<Left>();
  const Result<ByteBuffer> bytes =
      read_file(directory / snapshot_name(snapshots.back()), kMostStateBytes);
  if (!bytes.ok()) return bytes.error();
  Result<State> state = state_from_bytes(*bytes);
  if (!state.ok()) return std::move(state).error().within(snapshot_name(snapshots.back()));
  Left left{.state = std::move(state).value()};
  // Also the rounds before the snapshot that are still there: for replicas that are behind.
  for (const std::uint64_t first : logs_in(directory)) {
    const Result<ByteBuffer> log = read_file(directory / log_name(first), kMostStateBytes);
    if (!log.ok()) continue;
    ByteReader in(*log);
    while (std::optional<JournalRound> round = next_record(in)) {
      // A log begins with what the one before it ends with: rounds that had closed and were not
      // due.
      if (!left.rounds.empty() && round->step <= left.rounds.back().step) continue;
      if (!left.rounds.empty() && round->from > left.rounds.back().step + 1) left.rounds.clear();
      left.rounds.push_back(std::move(*round));
    }
  }
  return std::optional(std::move(left));
}

Status Journal::keep_in(const std::filesystem::path& directory, State state, std::uint64_t step) {
  Status written = settle();
  if (!written.ok()) return written;
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  std::string begin;
  log_rounds_ = 0;
  for (const JournalRound& round : recent_) {
    if (round.step < step) continue;
    begin += record_of(round);
    ++log_rounds_;
  }
  log_bytes_ = begin.size();
  // The log first, and whole: a snapshot that is there always has its log, also if a hub is killed
  // here that goes on from a snapshot of this very step.
  const std::filesystem::path path = directory / log_name(step);
  written = write_file_atomically(path, std::as_bytes(std::span(begin)));
  if (!written.ok()) return written;
  log_ = std::ofstream(path, std::ios::binary | std::ios::app);
  if (!log_) return Error{ErrorCode::kIo, path.string() + ": cannot write"};
  directory_ = directory;
  snapshot_bytes_ = 0;
  for (const auto& [name, values] : state.tensors) snapshot_bytes_ += values.size() * sizeof(float);
  const std::uint64_t needed = recent_.empty() ? step : recent_.front().step;
  snapshot_ = std::async(std::launch::async, [directory, state = std::move(state), step, needed] {
    Status kept = write_file_atomically(directory / snapshot_name(step), to_bytes(state));
    if (kept.ok()) remove_old(directory, needed);
    return kept;
  });
  return Done{};
}

Status Journal::settle() { return snapshot_.valid() ? snapshot_.get() : Status(Done{}); }

Result<std::optional<RunRecord>> Journal::read_run(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kRunName;
  if (!std::filesystem::exists(path)) return std::optional<RunRecord>();
  const Result<ByteBuffer> bytes = read_file(path, kMostStateBytes);
  if (!bytes.ok()) return bytes.error();
  Result<State> state = state_from_bytes(*bytes);
  if (!state.ok()) return std::move(state).error().within(path.string());
  const auto id = state->value<std::uint64_t>("run");
  const auto task = state->value<std::uint64_t>("task");
  const auto names = state->value<std::vector<std::string>>("names");
  const auto slots = state->value<std::vector<std::uint64_t>>("slots");
  if (!id.ok()) return id.error();
  if (!task.ok()) return task.error();
  if (!names.ok()) return names.error();
  if (!slots.ok()) return slots.error();
  if (names->size() != slots->size())
    return Error{ErrorCode::kMismatch, path.string() + ": not one slot for each name"};
  RunRecord run{.id = *id, .task = *task};
  for (std::size_t i = 0; i < names->size(); ++i) run.slots[(*names)[i]] = (*slots)[i];
  if (state->values.contains("last_step")) {
    const auto last_step = state->value<std::uint64_t>("last_step");
    if (!last_step.ok()) return last_step.error();
    run.last_step = *last_step;
  }
  return std::optional(std::move(run));
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
  return write_file_atomically(directory / kRunName, to_bytes(state));
}

Status Journal::log(const JournalRound& round) {
  if (directory_.empty()) return Done{};
  if (snapshot_.valid() &&
      snapshot_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    Status written = settle();
    if (!written.ok()) return written;
  }
  if (const std::size_t bytes = bytes_of(round); bytes > limits_.mean_bytes)
    return Error{ErrorCode::kIo, "the mean of step " + std::to_string(round.step) + " has " +
                                     std::to_string(bytes) + " bytes, a journal holds at most " +
                                     std::to_string(limits_.mean_bytes) +
                                     " of one round: send less, or run the hub without --dir"};
  const std::string record = record_of(round);
  log_ << record << std::flush;
  if (!log_) return Error{ErrorCode::kIo, directory_.string() + ": cannot write the journal"};
  ++log_rounds_;
  log_bytes_ += record.size();
  return Done{};
}

void Journal::add(JournalRound round, std::uint64_t needed) {
  LONGHAUL_CHECK_GE(round.step, end());
  LONGHAUL_CHECK_LE(round.from, end());
  recent_bytes_ += round.mean->size();
  recent_.push_back(std::move(round));
  trim(needed);
}

void Journal::trim(std::uint64_t needed) {
  const auto is_full = [&] {
    return recent_.size() > limits_.rounds || (recent_bytes_ > limits_.bytes && recent_.size() > 1);
  };
  while (is_full() && recent_.front().step < needed) {
    recent_bytes_ -= recent_.front().mean->size();
    complete_from_ = recent_.front().step + 1;
    recent_.pop_front();
  }
}

bool Journal::wants_snapshot() const {
  const std::size_t most_bytes = std::max(limits_.log_bytes, kLogsPerSnapshot * snapshot_bytes_);
  return !directory_.empty() && (log_rounds_ >= limits_.log_rounds || log_bytes_ >= most_bytes);
}

std::optional<Contributed> Journal::last_of(std::size_t slot, std::uint64_t from) const {
  for (auto round = recent_.rbegin(); round != recent_.rend() && round->step >= from; ++round) {
    if (const Contributor* own = round->contributor(slot))
      return Contributed{.step = round->step, .attendance = own->attendance};
  }
  return std::nullopt;
}

const JournalRound* Journal::first_from(std::uint64_t step) const {
  const auto found = std::ranges::lower_bound(recent_, step, {}, &JournalRound::step);
  return found == recent_.end() ? nullptr : &*found;
}

}  // namespace longhaul
