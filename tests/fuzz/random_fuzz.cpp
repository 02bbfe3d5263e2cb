// Bodies with a seed and the values of the subset it stands for.
#include "longhaul/codec/random_subset.h"
#include "longhaul/codec/tile.h"
#include "longhaul/codec/value_format.h"
#include "tests/fuzz/body_fuzz.h"

namespace {

using namespace longhaul;

constexpr std::size_t kSubsetBytes = 12;

// Bytes of a body with the subset at its start.
std::size_t wanted_bytes(const fuzz::BodyInput& input) {
  const std::uint32_t per_tile = load_le<std::uint32_t>(input.body.data() + 8);
  const RandomSubset subset{.seed = 0, .per_tile = per_tile};
  std::size_t bytes = kSubsetBytes;
  for (std::size_t tile = 0; tile < tile_count(input.header.elements); ++tile) {
    bytes +=
        value_bytes(input.header.format, subset.count_in(tile_size(tile, input.header.elements)));
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLongestFit = 300;
  const fuzz::BodyInput input = fuzz::split_input(PayloadKind::kRandom, {data, size});
  const bool has_subset = input.body.size() > kSubsetBytes &&
                          is_value_format(static_cast<std::uint8_t>(input.header.format));
  const std::size_t wanted =
      has_subset && input.is_fitted ? wanted_bytes(input) : input.body.size();
  const bool fits = wanted <= kLongestFit;
  fuzz::check_decoder(fits ? fuzz::sealed(input, kSubsetBytes, wanted) : fuzz::sealed(input),
                      input.header.elements);
  return 0;
}
