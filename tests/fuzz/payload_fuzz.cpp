// Whole payloads, nothing repaired: what arrives from a peer whose bytes are wrong in any way.
#include <algorithm>

#include "tests/fuzz/body_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace longhaul;
  const ByteView payload = std::as_bytes(std::span(data, size));
  // The count that the header claims, so that the check of the count does not hide what comes after
  // it.
  const std::uint64_t claimed = size < 16 ? 7 : load_le<std::uint64_t>(payload.data() + 8);
  fuzz::check_decoder(payload, std::min<std::uint64_t>(claimed, fuzz::kMaxElements));
  return 0;
}
