// A fingerprint of numbers or bytes, to tell whether two are bit for bit the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace longhaul {

std::uint64_t digest_of(std::span<const float> values);  // xxHash (XXH3, 64 bits) of the bytes

std::uint64_t digest_of(std::span<const std::byte> bytes);

// As 16 hexadecimal digits: many readers of JSON round numbers of 64 bits.
std::string digest_text(std::uint64_t digest);
std::string digest_text(std::span<const float> values);

}  // namespace longhaul
