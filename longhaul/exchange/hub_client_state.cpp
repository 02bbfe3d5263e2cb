// The client's part of a checkpoint: written by save(), read by stand_at().
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/exchange/hub_client.h"
#include "longhaul/exchange/saved.h"

namespace longhaul {
namespace {

constexpr const char* kRun = "run";
constexpr const char* kFirstStep = "first_step";
constexpr const char* kSent = "sent";
constexpr const char* kUpdate = "update";
constexpr const char* kAttendance = "attendance";
constexpr const char* kStep = "step";             // of the engine
constexpr const char* kNextRound = "next_round";  // of the replica

Result<std::vector<RoundId>> rounds_in(const State& state, const char* name) {
  const auto numbers = LONGHAUL_TRY(state.value<std::vector<std::uint64_t>>(name));
  std::vector<RoundId> rounds;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    if (numbers[i + 1] > std::numeric_limits<std::uint32_t>::max()) break;
    rounds.push_back({.step = numbers[i], .part = static_cast<std::uint32_t>(numbers[i + 1])});
  }
  if (2 * rounds.size() == numbers.size()) return rounds;
  return Error{ErrorCode::kMismatch, std::string(name) + ": not a step and a part of each round"};
}

Result<Attendance> attendance_in(const State& checkpoint, std::uint64_t step) {
  const auto steps = LONGHAUL_TRY(checkpoint.value<std::vector<std::uint64_t>>(kAttendance));
  if (steps.size() % 2 == 1) {
    Attendance attendance{.since = steps.front()};
    for (std::size_t i = 1; i < steps.size(); i += 2)
      attendance.sat_out.push_back({.first = steps[i], .last = steps[i + 1]});
    if (attendance.can_be_of(step + 1)) return attendance;
  }
  return Error{ErrorCode::kMismatch, "checkpoint: steps that it cannot have taken part in"};
}

// From a file. Its part is known to the engine only, so its size is checked there.
Result<CheckedPayload> own_update(ByteView bytes, std::size_t model_elements) {
  const std::uint64_t elements = claimed_elements(bytes);
  if (elements > model_elements)
    return Error{ErrorCode::kMismatch, "an update of more than the model"};
  return CheckedPayload::check_update({bytes.begin(), bytes.end()}, elements);
}

Status read_position(const State& checkpoint, ClientOptions& client) {
  const Result<std::vector<RoundId>> next_round = rounds_in(checkpoint, kNextRound);
  const auto first_step = checkpoint.value<std::uint64_t>(kFirstStep);
  const auto run = checkpoint.value<std::uint64_t>(kRun);
  const auto step = checkpoint.value<std::uint64_t>(kStep);
  if (!next_round.ok()) return next_round.error();
  if (!first_step.ok()) return first_step.error();
  if (!run.ok()) return run.error();
  if (!step.ok()) return step.error();
  if (next_round->size() != 1)
    return Error{ErrorCode::kMismatch, "checkpoint: not one round that comes next"};
  Attendance attendance = LONGHAUL_TRY(attendance_in(checkpoint, *step));
  client.is_fresh = false;
  client.run = *run;
  client.initial.reset();
  client.next_round = next_round->front();
  client.first_step = *first_step;
  client.step = *step;
  client.attendance = std::move(attendance);
  return Done{};
}

// The engine has the bytes of an update as a message if its merge rule needs them.
bool has_message(const State& checkpoint, const Update& update) {
  const auto message = checkpoint.blobs.find(name_in_round(kOwnMessage, update.round));
  return message != checkpoint.blobs.end() && message->second == *update.payload.bytes();
}

Result<ByteView> saved_update(const State& checkpoint, RoundId round) {
  const std::string own = name_in_round(kUpdate, round);
  return checkpoint.blob(checkpoint.blobs.contains(own) ? own : name_in_round(kOwnMessage, round));
}

Status read_updates(const State& checkpoint, ClientOptions& client) {
  const std::vector<RoundId> sent = LONGHAUL_TRY(rounds_in(checkpoint, kSent));
  for (const RoundId& round : sent) {
    const ByteView payload = LONGHAUL_TRY(saved_update(checkpoint, round));
    Result<CheckedPayload> update = own_update(payload, client.elements);
    if (!update.ok()) return std::move(update).error().within("checkpoint");
    client.own[round] = {.round = round,
                         .payload = std::move(update).value(),
                         .attendance = client.attendance->until(round.step)};
  }
  return Done{};
}

}  // namespace

void HubClient::save(State& checkpoint) const {
  const auto step = checkpoint.value<std::uint64_t>(kStep);
  LONGHAUL_CHECK(step.ok());
  const MutexLock lock(mutex_);
  checkpoint.values[kRun] = run_;
  checkpoint.values[kFirstStep] = first_step_;
  std::vector<std::uint64_t> sent;
  for (const auto& [round, update] : own_) {
    sent.insert(sent.end(), {round.step, round.part});
    if (!has_message(checkpoint, update))
      checkpoint.blobs[name_in_round(kUpdate, round)] = *update.payload.bytes();
  }
  checkpoint.values[kSent] = sent;
  const Attendance attendance = attendance_.value_or(Attendance{.since = *step});
  std::vector<std::uint64_t> steps{attendance.since};
  for (const StepRange& range : attendance.sat_out)
    steps.insert(steps.end(), {range.first, range.last});
  checkpoint.values[kAttendance] = steps;
}

Status stand_at(const State& checkpoint, ClientOptions& client, const SentUpdates* sent) {
  Status version = check_saved_version(checkpoint);
  if (!version.ok()) return std::move(version).error().within("checkpoint");
  LONGHAUL_TRY(read_position(checkpoint, client));
  Status updates = read_updates(checkpoint, client);
  if (!updates.ok() || sent == nullptr) return updates;
  for (const auto& [round, payload] : *sent) {
    if (round.step < client.step) continue;
    Result<CheckedPayload> update = own_update(payload, client.elements);
    if (!update.ok()) return std::move(update).error().within("sent updates");
    client.own.try_emplace(round, Update{.round = round,
                                         .payload = std::move(update).value(),
                                         .attendance = *client.attendance});
  }
  client.own_until = {.step = client.step};
  if (!client.own.empty())
    client.own_until = std::max(*client.own_until, after(client.own.rbegin()->first));
  return Done{};
}

}  // namespace longhaul
