// Random secrets and their digests, as lower-case hex.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::access {

inline constexpr std::size_t kSecretBytes = 32;  // 256 bits; twice as many characters

// From OpenSSL's generator, which is seeded by the system. Throws std::runtime_error where it has
// no randomness to give: there is nothing safe to go on with.
std::string random_hex(std::size_t bytes);

std::string sha256_hex(std::string_view text);

// Exactly `bytes` bytes in lower-case hex.
bool is_hex(std::string_view text, std::size_t bytes);

// Its time depends on the lengths only, not on where the texts differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace longhaul::access
