// The form of kept values on the wire: fp32, bf16, or codes of 8, 4, 2 or 1 bits. Codes come in
// blocks, each with its own grid. A block holds up to kBlockValues values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul {

enum class ValueFormat : std::uint8_t {
  kFp32 = 0,
  kBf16 = 1,
  k8Bit = 2,
  k4Bit = 3,
  k2Bit = 4,
  k1Bit = 5
};

inline constexpr std::size_t kBlockValues = 512;

std::string_view name_of(ValueFormat format);
Result<ValueFormat> parse_value_format(std::string_view name);
bool is_value_format(std::uint8_t wire);

unsigned bits_of(ValueFormat format);
// Bytes that `count` values take, grids included.
std::size_t value_bytes(ValueFormat format, std::size_t count);

// Writes value_bytes() bytes to `out` and replaces each value by what a decoder will read, so that
// the caller can take exactly that from its residual.
void encode_values(ValueFormat format, std::span<float> values, std::span<std::byte> out);

// `in` passed check_values() and holds value_bytes() bytes.
void decode_values(ValueFormat format, ByteView in, std::span<float> values);

// Refuses what would decode to NaN or infinity. `in` holds value_bytes(format, count) bytes.
Status check_values(ValueFormat format, ByteView in, std::size_t count);

}  // namespace longhaul
