#include "longhaul/access/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <vector>

#include "longhaul/base/check.h"

namespace longhaul::access {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string hex_of(std::span<const unsigned char> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    text += kHexDigits[byte >> 4U];
    text += kHexDigits[byte & 15U];
  }
  return text;
}

}  // namespace

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> secret(bytes);
  if (RAND_bytes(secret.data(), static_cast<int>(bytes)) != 1)
    throw std::runtime_error("OpenSSL has no randomness to give");
  std::string text = hex_of(secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return text;
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  const int is_done =
      EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  LONGHAUL_CHECK_EQ(is_done, 1);
  return hex_of(digest);
}

bool is_hex(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes && std::ranges::all_of(text, [](char letter) {
           return kHexDigits.find(letter) != std::string_view::npos;
         });
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace longhaul::access
