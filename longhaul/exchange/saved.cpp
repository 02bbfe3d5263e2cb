#include "longhaul/exchange/saved.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/state.h"
#include "longhaul/codec/codec.h"

namespace longhaul {

Status check_saved_version(const State& state) {
  const auto version = LONGHAUL_TRY(state.value<std::uint64_t>("version"));
  if (version == kSavedVersion) return Done{};
  std::string message =
      "expected version " + std::to_string(kSavedVersion) + ", got " + std::to_string(version);
  if (version < kSavedVersion) message += ": of an older release, whose runs begin anew";
  return Error{ErrorCode::kMismatch, std::move(message)};
}

std::string name_in_round(std::string_view what, RoundId round) {
  std::string name(what);
  name.append(".").append(std::to_string(round.step));
  name.append(".").append(std::to_string(round.part));
  return name;
}

void save_tensor(std::string_view name, std::span<const float> values, State& state) {
  state.tensors[std::string(name)].assign(values.begin(), values.end());
}

Status load_tensor(std::string_view name, const State& state, std::span<float> out) {
  const std::span<const float> values = LONGHAUL_TRY(state.tensor(name, out.size()));
  Status finite = check_finite(values);
  if (!finite.ok()) return std::move(finite).error().within(name);
  std::ranges::copy(values, out.begin());
  return Done{};
}

}  // namespace longhaul
