// Bodies with positions and values.
#include "tests/fuzz/body_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace longhaul;
  const fuzz::BodyInput input = fuzz::split_input(PayloadKind::kSparse, {data, size});
  fuzz::check_decoder(fuzz::sealed(input), input.header.elements);
  return 0;
}
