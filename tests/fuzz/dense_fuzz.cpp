// Bodies with every element.
#include "longhaul/codec/value_format.h"
#include "tests/fuzz/body_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace longhaul;
  const fuzz::BodyInput input = fuzz::split_input(PayloadKind::kDense, {data, size});
  const auto [kind, format, elements] = input.header;
  const bool is_known = is_value_format(static_cast<std::uint8_t>(format));
  const std::size_t wanted = is_known ? value_bytes(format, elements) : 0;
  // Of the large updates only that whose last tile is small: the rest is the same work many times
  // over.
  constexpr std::size_t kLongestFit = 2100;
  const bool fits = input.is_fitted &&
                    (wanted <= kLongestFit || (format == ValueFormat::k1Bit && elements == 65537));
  fuzz::check_decoder(fits ? fuzz::sealed(input, 0, wanted) : fuzz::sealed(input), elements);
  return 0;
}
