#include "longhaul/codec/value_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "longhaul/codec/bf16.h"
#include "longhaul/codec/kernels.h"

namespace longhaul {
namespace {

struct FormatRow {
  ValueFormat format;
  std::string_view name;
  unsigned bits;
};
constexpr std::array kFormats{
    FormatRow{ValueFormat::kFp32, "fp32", 32}, FormatRow{ValueFormat::kBf16, "bf16", 16},
    FormatRow{ValueFormat::k8Bit, "8bit", 8},  FormatRow{ValueFormat::k4Bit, "4bit", 4},
    FormatRow{ValueFormat::k2Bit, "2bit", 2},  FormatRow{ValueFormat::k1Bit, "1bit", 1},
};

const FormatRow& row_of(ValueFormat format) {
  return kFormats.at(static_cast<std::size_t>(format));
}

bool has_grid(ValueFormat format) { return bits_of(format) <= 8; }

// One bit has a single magnitude, so it needs no upper end.
std::size_t grid_bytes(ValueFormat format) {
  if (!has_grid(format)) return 0;
  return format == ValueFormat::k1Bit ? 2 : 4;
}

std::size_t code_bytes(ValueFormat format, std::size_t count) {
  return (count * bits_of(format) + 7) / 8;
}

// The ends of a block's grid as they travel.
struct Ends {
  std::uint16_t lo = 0;
  std::uint16_t hi = 0;
};

// Rounding up must not reach infinity.
std::uint16_t end_at(float magnitude) {
  return bf16_from_float(std::min(magnitude, std::numeric_limits<float>::max()));
}

// Two magnitudes: the means of the values below and above the overall mean (one step of Lloyd's
// method).
Ends two_means(std::span<const float> values, float sum) {
  const auto count = static_cast<float>(values.size());
  const kernels::Tail above = kernels::tail_of_magnitudes(values, sum / count);
  if (above.count == 0 || above.count == values.size()) {
    const std::uint16_t mean = end_at(sum / count);
    return {.lo = mean, .hi = mean};
  }
  const float low =
      std::max(0.0F, sum - above.sum) / static_cast<float>(values.size() - above.count);
  const std::uint16_t hi = end_at(above.sum / static_cast<float>(above.count));
  return {.lo = std::min(end_at(low), hi), .hi = hi};
}

Ends means_of(ValueFormat format, std::span<const float> values) {
  const float sum = kernels::sum_of_magnitudes(values);
  if (!std::isfinite(sum)) {  // the sum overflows although its terms do not: all that much smaller
    static_assert(kBlockValues < 1024);
    std::array<float, kBlockValues> storage;
    const std::span scaled = std::span(storage).first(values.size());
    std::ranges::transform(values, scaled.begin(), [](float v) { return v / 1024.0F; });
    const Ends ends = means_of(format, scaled);
    return {.lo = end_at(1024.0F * float_from_bf16(ends.lo)),
            .hi = end_at(1024.0F * float_from_bf16(ends.hi))};
  }
  if (format == ValueFormat::k2Bit) return two_means(values, sum);
  const std::uint16_t mean = end_at(sum / static_cast<float>(values.size()));
  return {.lo = mean, .hi = mean};
}

Ends ends_of(ValueFormat format, std::span<const float> values) {
  if (bits_of(format) <= 2) return means_of(format, values);
  const kernels::Range range = kernels::magnitude_range(values);
  return {.lo = end_at(range.min_magnitude), .hi = end_at(range.max_magnitude)};
}

kernels::Grid grid_between(ValueFormat format, Ends ends) {
  kernels::Grid grid{.lo = float_from_bf16(ends.lo), .magnitude_bits = bits_of(format) - 1};
  const float width = float_from_bf16(ends.hi) - grid.lo;
  const auto top = static_cast<float>((1U << grid.magnitude_bits) - 1U);
  if (top > 0.0F) grid.step = width / top;
  const float levels_per_unit =
      top / width;  // infinite or NaN where the grid is (almost) one point
  if (std::isfinite(levels_per_unit)) grid.levels_per_unit = levels_per_unit;
  return grid;
}

// Codes of kBits bits move between a byte each and side by side, eight at a time, in three steps
// that double or halve the distance between them.
template <unsigned kBits>
struct Spread {
  // The lowest `width` bits of every `every` bits.
  static constexpr std::uint64_t repeated(unsigned width, unsigned every) {
    std::uint64_t mask = 0;
    for (unsigned at = 0; at < 64; at += every) mask |= (~std::uint64_t{0} >> (64 - width)) << at;
    return mask;
  }
  static constexpr std::uint64_t kFours = repeated(4 * kBits, 32);
  static constexpr std::uint64_t kTwos = repeated(2 * kBits, 16);
  static constexpr std::uint64_t kOnes = repeated(kBits, 8);

  static std::uint64_t apart(std::uint64_t packed) {
    packed = (packed | packed << (32 - 4 * kBits)) & kFours;
    packed = (packed | packed << (16 - 2 * kBits)) & kTwos;
    return (packed | packed << (8 - kBits)) & kOnes;
  }
  static std::uint64_t together(std::uint64_t codes) {
    codes = (codes | codes >> (8 - kBits)) & kTwos;
    codes = (codes | codes >> (16 - 2 * kBits)) & kFours;
    return codes | codes >> (32 - 4 * kBits);
  }
};

// The first code lies in the lowest bits of the first byte; unused bits of the last byte are zero.
template <unsigned kBits>
void pack_as(std::span<const std::uint8_t> codes, std::byte* out) {
  std::uint64_t word = 0;
  std::size_t i = 0;
  for (; i + 8 <= codes.size(); i += 8, out += kBits) {
    std::memcpy(&word, codes.data() + i, 8);
    word = Spread<kBits>::together(word);
    std::memcpy(out, &word, kBits);
  }
  if (i == codes.size()) return;
  word = 0;
  std::memcpy(&word, codes.data() + i, codes.size() - i);
  word = Spread<kBits>::together(word);
  std::memcpy(out, &word, ((codes.size() - i) * kBits + 7) / 8);
}

template <unsigned kBits>
void unpack_as(const std::byte* in, std::span<std::uint8_t> codes) {
  std::size_t i = 0;
  for (; i + 8 <= codes.size(); i += 8, in += kBits) {
    std::uint64_t word = 0;
    std::memcpy(&word, in, kBits);
    word = Spread<kBits>::apart(word);
    std::memcpy(codes.data() + i, &word, 8);
  }
  if (i == codes.size()) return;
  std::uint64_t word = 0;
  std::memcpy(&word, in, ((codes.size() - i) * kBits + 7) / 8);
  word = Spread<kBits>::apart(word);
  std::memcpy(codes.data() + i, &word, codes.size() - i);
}

void pack(std::span<const std::uint8_t> codes, unsigned bits, std::byte* out) {
  if (bits == 1) return pack_as<1>(codes, out);
  if (bits == 2) return pack_as<2>(codes, out);
  if (bits == 4) return pack_as<4>(codes, out);
  return pack_as<8>(codes, out);
}

void unpack(const std::byte* in, unsigned bits, std::span<std::uint8_t> codes) {
  if (bits == 1) return unpack_as<1>(in, codes);
  if (bits == 2) return unpack_as<2>(in, codes);
  if (bits == 4) return unpack_as<4>(in, codes);
  return unpack_as<8>(in, codes);
}

using Codes = std::array<std::uint8_t, kBlockValues>;

void encode_block(ValueFormat format, std::span<float> values, std::byte* out) {
  const Ends ends = ends_of(format, values);
  const kernels::Grid grid = grid_between(format, ends);
  store_le(out, ends.lo);
  if (format != ValueFormat::k1Bit) store_le(out + 2, ends.hi);
  Codes storage;
  const std::span codes = std::span(storage).first(values.size());
  kernels::quantise(values, grid, codes);
  pack(codes, bits_of(format), out + grid_bytes(format));
  kernels::dequantise(codes, grid, values);
}

Ends read_ends(ValueFormat format, const std::byte* in) {
  const auto lo = load_le<std::uint16_t>(in);
  return {.lo = lo, .hi = format == ValueFormat::k1Bit ? lo : load_le<std::uint16_t>(in + 2)};
}

void decode_block(ValueFormat format, const std::byte* in, std::span<float> values) {
  const kernels::Grid grid = grid_between(format, read_ends(format, in));
  Codes storage;
  const std::span codes = std::span(storage).first(values.size());
  unpack(in + grid_bytes(format), bits_of(format), codes);
  kernels::dequantise(codes, grid, values);
}

// Calls visit(first value, values in the block, offset of the block's bytes) for each block.
template <typename Visit>
void for_each_block(ValueFormat format, std::size_t count, const Visit& visit) {
  std::size_t offset = 0;
  for (std::size_t first = 0; first < count; first += kBlockValues) {
    const std::size_t here = std::min(kBlockValues, count - first);
    visit(first, here, offset);
    offset += grid_bytes(format) + code_bytes(format, here);
  }
}

Status not_finite(std::size_t position) {
  return Error{ErrorCode::kNotFinite, "value " + std::to_string(position) + " is not finite"};
}

// Grids run upwards from a number that is not negative, so every level between the ends is finite.
Status check_grids(ValueFormat format, ByteView in, std::size_t count) {
  constexpr std::uint16_t kInfinity = kInfinityBits >> 16;
  Status status = Done{};
  for_each_block(format, count, [&](std::size_t first, std::size_t, std::size_t offset) {
    const Ends ends = read_ends(format, in.data() + offset);
    if (status.ok() && (ends.hi >= kInfinity || ends.lo > ends.hi)) status = not_finite(first);
  });
  if (status.ok() && !padding_is_zero(in, count % kBlockValues * bits_of(format))) {
    return corrupt_payload("values: padding is not zero");
  }
  return status;
}

}  // namespace

std::string_view name_of(ValueFormat format) { return row_of(format).name; }

bool is_value_format(std::uint8_t wire) { return wire < kFormats.size(); }

unsigned bits_of(ValueFormat format) { return row_of(format).bits; }

Result<ValueFormat> parse_value_format(std::string_view name) {
  for (const FormatRow& row : kFormats) {
    if (row.name == name) return row.format;
  }
  return Error{ErrorCode::kInvalidArgument,
               "value format: expected fp32, bf16, 8bit, 4bit, 2bit or 1bit, got \"" +
                   std::string(name) + '"'};
}

std::size_t value_bytes(ValueFormat format, std::size_t count) {
  const std::size_t whole = count / kBlockValues;
  const std::size_t rest = count % kBlockValues;
  const std::size_t tail = rest == 0 ? 0 : grid_bytes(format) + code_bytes(format, rest);
  return whole * (grid_bytes(format) + code_bytes(format, kBlockValues)) + tail;
}

void encode_values(ValueFormat format, std::span<float> values, std::span<std::byte> out) {
  LONGHAUL_CHECK_EQ(out.size(), value_bytes(format, values.size()));
  if (format == ValueFormat::kFp32) {
    if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
    return;
  }
  for_each_block(format, values.size(),
                 [&](std::size_t first, std::size_t here, std::size_t offset) {
                   const std::span block = values.subspan(first, here);
                   if (has_grid(format)) return encode_block(format, block, out.data() + offset);
                   std::array<std::uint16_t, kBlockValues> halves;
                   const std::span used = std::span(halves).first(here);
                   kernels::to_bf16(block, used);
                   std::memcpy(out.data() + offset, halves.data(), 2 * here);
                   kernels::from_bf16(used, block);
                 });
}

void decode_values(ValueFormat format, ByteView in, std::span<float> values) {
  LONGHAUL_CHECK_EQ(in.size(), value_bytes(format, values.size()));
  if (format == ValueFormat::kFp32) {
    if (!values.empty()) std::memcpy(values.data(), in.data(), in.size());
    return;
  }
  for_each_block(format, values.size(),
                 [&](std::size_t first, std::size_t here, std::size_t offset) {
                   const std::span block = values.subspan(first, here);
                   if (has_grid(format)) return decode_block(format, in.data() + offset, block);
                   std::array<std::uint16_t, kBlockValues> halves;
                   std::memcpy(halves.data(), in.data() + offset, 2 * here);
                   kernels::from_bf16(std::span(halves).first(here), block);
                 });
}

Status check_values(ValueFormat format, ByteView in, std::size_t count) {
  LONGHAUL_CHECK_EQ(in.size(), value_bytes(format, count));
  if (has_grid(format)) return check_grids(format, in, count);
  std::array<float, kBlockValues> block;
  for (std::size_t first = 0; first < count; first += kBlockValues) {
    const std::size_t here = std::min(kBlockValues, count - first);
    const std::span used = std::span(block).first(here);
    const std::size_t width = bits_of(format) / 8;
    decode_values(format, in.subspan(first * width, here * width), used);
    const std::size_t bad = kernels::first_non_finite(used);
    if (bad < here) return not_finite(first + bad);
  }
  return Done{};
}

}  // namespace longhaul
