// Shared by the parts of a replica that save themselves to a State and load from one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"
#include "longhaul/exchange/exchange.h"

namespace longhaul {

struct State;

// The part of a replica's state that is saved.
enum class Extent : std::uint8_t {
  kReplica,  // all of one replica: a checkpoint
  kShared,   // what is equal on all replicas: a snapshot
};

// The version of saved states. 1 was before local steps, 2 before updates said since when their
// replica takes part, 3 before rounds were named by step and part and positions were saved; none is
// read any more.
inline constexpr std::uint64_t kSavedVersion = 4;
Status check_saved_version(const State& state);

// "message.12.0": what is saved once for each round.
std::string name_in_round(std::string_view what, RoundId round);
// An own update whose mean is not merged. The engine saves it under this name if its merge rule
// needs it; the client saves only updates that the engine has not saved.
inline constexpr std::string_view kOwnMessage = "message";

void save_tensor(std::string_view name, std::span<const float> values, State& state);

// Fills `out`, or leaves it alone if the tensor is missing, of another size or not finite.
Status load_tensor(std::string_view name, const State& state, std::span<float> out);

}  // namespace longhaul
