// The state that must outlive a process: named tensors, bytes and small values, written as a
// safetensors file with a checksum. docs/file_formats.md describes every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/byte_rope.h"
#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul {

// Named tensors, values and bytes that outlive a process.
struct State {
  std::map<std::string, std::vector<float>, std::less<>> tensors;
  std::map<std::string, ByteBuffer, std::less<>> blobs;
  nlohmann::json values = nlohmann::json::object();  // doubles keep their bits; no NaN, no infinity

  // The entry that a reader asks for: an error names what is missing or not of the kind, or size,
  // expected.
  [[nodiscard]] Result<std::span<const float>> tensor(std::string_view name,
                                                      std::size_t elements) const;
  [[nodiscard]] Result<ByteView> blob(std::string_view name) const;
  // T: std::uint64_t, double, std::string, or a vector of one of them.
  template <typename T>
  [[nodiscard]] Result<T> value(std::string_view name) const;

  bool operator==(const State&) const = default;
};

// The version of state files and hub logs. Version 1 had no checksum and is no longer read.
inline constexpr std::uint32_t kFileFormat = 2;

inline constexpr std::size_t kMostStateHeaderBytes = std::size_t{1} << 20;

// Shapes of tensors that are to be read by others, by name; a tensor without one is a vector.
using Shapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

// One form for one state, with the checksum in its metadata. Preconditions: no tensor and blob of
// one name, none that is called "__metadata__"; text is UTF-8; shapes have as many elements as
// their tensors.
ByteBuffer to_bytes(const State& state, const Shapes& shapes = {});

// The bytes of to_bytes(), without a copy of tensors and blobs: the rope keeps the state.
ByteRope to_rope(const std::shared_ptr<const State>& state);

// Reads a file that to_bytes() wrote. Refuses one that is damaged or of another format: no byte
// counts before the checksum of all of them was compared.
Result<State> state_from_bytes(ByteView bytes);

// Reads also a safetensors file of another program, which has no checksum. Refuses anything but a
// well-formed file of F32 and U8 tensors that fill it without gap or overlap. Shapes are not kept;
// of the metadata, only the values that to_bytes() wrote.
Result<State> state_from_safetensors(ByteView bytes);

}  // namespace longhaul
