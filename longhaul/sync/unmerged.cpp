#include "longhaul/sync/unmerged.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"

namespace longhaul {
namespace {

std::string_view unit_name(Unit unit) { return unit == Unit::kMove ? "move" : "gradient"; }

Result<Unit> parse_unit(std::string_view name) {
  for (const Unit unit : {Unit::kGradient, Unit::kMove}) {
    if (name == unit_name(unit)) return unit;
  }
  return Error{ErrorCode::kMismatch,
               "units: expected gradient or move, got \"" + std::string(name) + '"'};
}

}  // namespace

Unmerged::Unmerged(std::size_t elements, std::vector<Part> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) parts_.push_back({.first = 0, .count = elements});
}

void Unmerged::add(RoundId round, Unit unit, CheckedPayload payload, float weight) {
  const auto place = std::ranges::upper_bound(messages_, round, {}, &UnmergedMessage::round);
  messages_.insert(place, {.round = round,
                           .unit = unit,
                           .weight = weight,
                           .payload = std::move(payload),
                           .part = part_of(round)});
}

std::vector<WeightedPayload> Unmerged::of(const Part& part) const {
  std::vector<WeightedPayload> told;
  for (const UnmergedMessage& message : messages_) {
    const bool is_of_part = message.part.first == part.first && message.part.count == part.count;
    if (is_of_part && !message.payload.empty() && message.weight != 0)
      told.push_back({.payload = message.payload, .weight = message.weight});
  }
  return told;
}

void Unmerged::clear_oldest(RoundId round) { messages_[index_of(round)].payload = {}; }

void Unmerged::remove(RoundId oldest_round) {
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(index_of(oldest_round)));
}

void Unmerged::set_weight(Unit unit, float weight) {
  for (UnmergedMessage& message : messages_) {
    if (message.unit == unit) message.weight = weight;
  }
}

std::size_t Unmerged::index_of(RoundId oldest_round) const {
  const auto found = std::ranges::find_if(messages_, [&](const UnmergedMessage& message) {
    return message.round.part == oldest_round.part;
  });
  LONGHAUL_CHECK(found != messages_.end() && found->round == oldest_round);
  return static_cast<std::size_t>(found - messages_.begin());
}

const UnmergedMessage& Unmerged::oldest(RoundId round) const { return messages_[index_of(round)]; }

std::size_t Unmerged::count(Unit unit) const {
  return static_cast<std::size_t>(std::ranges::count(messages_, unit, &UnmergedMessage::unit));
}

void Unmerged::save(Extent extent, State& state) const {
  std::vector<std::string> units;
  std::vector<double> weights;
  for (const UnmergedMessage& message : messages_) {
    units.emplace_back(unit_name(message.unit));
    weights.push_back(static_cast<double>(message.weight));
    if (extent == Extent::kReplica)
      state.blobs[name_in_round(kOwnMessage, message.round)] = *message.payload.bytes();
  }
  state.values["units"] = units;
  if (extent == Extent::kReplica) state.values["weights"] = weights;
}

Status Unmerged::load(Extent extent, const State& state, std::span<const RoundId> rounds) {
  const auto units = LONGHAUL_TRY(state.value<std::vector<std::string>>("units"));
  if (units.size() != rounds.size())
    return Error{ErrorCode::kMismatch, "units: not one for each round in flight"};
  std::vector<double> weights(rounds.size(), 1.0);
  if (extent == Extent::kReplica) {
    const auto saved = LONGHAUL_TRY(state.value<std::vector<double>>("weights"));
    if (saved.size() != rounds.size())
      return Error{ErrorCode::kMismatch, "weights: not one for each round in flight"};
    weights = saved;
  }
  messages_.clear();
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const Unit unit = LONGHAUL_TRY(parse_unit(units[i]));
    const std::string name = name_in_round(kOwnMessage, rounds[i]);
    const ByteView payload =
        LONGHAUL_TRY(extent == Extent::kReplica ? state.blob(name) : Result<ByteView>(ByteView()));
    Result<CheckedPayload> message =
        CheckedPayload::check_update({payload.begin(), payload.end()}, part_of(rounds[i]).count);
    if (!message.ok()) return std::move(message).error().within(name);
    add(rounds[i], unit, std::move(message).value(), static_cast<float>(weights[i]));
  }
  return Done{};
}

}  // namespace longhaul
