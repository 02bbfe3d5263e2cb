#include "longhaul/codec/digest.h"

#include <xxhash.h>

namespace longhaul {

std::uint64_t digest_of(std::span<const float> values) {
  return XXH3_64bits(values.data(), values.size_bytes());
}

std::string digest_text(std::span<const float> values) {
  std::string text(16, '0');
  std::uint64_t digest = digest_of(values);
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, digest >>= 4)
    *digit = "0123456789abcdef"[digest & 0xF];
  return text;
}

}  // namespace longhaul
