// Files of states: what is accepted fills the file without gap or overlap, and is written so that
// it is read again as the same, in one piece or in several.
#include "longhaul/base/state.h"

#include <algorithm>
#include <memory>

namespace {

using namespace longhaul;

void check_state(ByteView file) {
  // A file of ours is read as one of others, after its checksum: which is never found by chance.
  LONGHAUL_CHECK(!state_from_bytes(file).ok() || state_from_safetensors(file).ok());
  const Result<State> state = state_from_safetensors(file);
  if (!state.ok()) return;
  std::size_t bytes = 0;
  for (const auto& [name, values] : state->tensors) {
    bytes += values.size() * sizeof(float);
    LONGHAUL_CHECK(state->tensor(name, values.size()).ok());
  }
  for (const auto& [name, blob] : state->blobs) {
    bytes += blob.size();
    LONGHAUL_CHECK(state->blob(name).ok());
  }
  LONGHAUL_CHECK_LE(bytes, file.size());
  for (const auto& item : state->values.items()) {
    const bool is_count = state->value<std::uint64_t>(item.key()).ok();
    LONGHAUL_CHECK(!is_count || state->value<double>(item.key()).ok());
  }
  // Compared as bytes: NaN is not equal to itself.
  const ByteBuffer written = to_bytes(*state);
  LONGHAUL_CHECK(to_bytes(state_from_bytes(written).value()) == written);
  ByteBuffer pieces;
  const ByteRope rope = to_rope(std::make_shared<const State>(*state));
  for (const ByteView piece : rope.pieces())
    pieces.insert(pieces.end(), piece.begin(), piece.end());
  LONGHAUL_CHECK(pieces == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input = std::as_bytes(std::span(data, size));
  check_state(input);
  // The same text with the length that it has: a header that ends at the first zero.
  const auto end = std::ranges::find(input, std::byte{0});
  const auto length = static_cast<std::size_t>(end - input.begin());
  ByteWriter repaired;
  repaired.u64(length);
  repaired.bytes(input.first(length));
  repaired.bytes(input.subspan(std::min(size, length + 1)));
  check_state(std::move(repaired).release());
  return 0;
}
