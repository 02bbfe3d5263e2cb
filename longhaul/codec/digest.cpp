#include "longhaul/codec/digest.h"

#include <xxhash.h>

namespace longhaul {

std::uint64_t digest_of(std::span<const float> values) { return digest_of(std::as_bytes(values)); }

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string digest_text(std::span<const float> values) { return digest_text(digest_of(values)); }

std::string digest_text(std::uint64_t digest) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, digest >>= 4)
    *digit = "0123456789abcdef"[digest & 0xF];
  return text;
}

}  // namespace longhaul
