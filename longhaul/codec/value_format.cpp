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

// Both in the order of ValueFormat.
constexpr std::array<std::string_view, 6> kFormatNames{"fp32", "bf16", "8bit",
                                                       "4bit", "2bit", "1bit"};
constexpr std::array<unsigned, kFormatNames.size()> kFormatBits{32, 16, 8, 4, 2, 1};

bool has_grid(ValueFormat format) { return bits_of(format) <= 8; }

// One bit has a single magnitude, so it needs no upper end.
std::size_t grid_bytes(ValueFormat format) {
  if (!has_grid(format)) return 0;
  return format == ValueFormat::k1Bit ? 2 : 4;
}

std::size_t code_bytes(ValueFormat format, std::size_t count) {
  return (count * bits_of(format) + 7) / 8;
}

// The ends of a block's grid as they travel: bf16.
using Ends = std::ranges::minmax_result<std::uint16_t>;

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
    return {.min = mean, .max = mean};
  }
  const float low =
      std::max(0.0F, sum - above.sum) / static_cast<float>(values.size() - above.count);
  const std::uint16_t hi = end_at(above.sum / static_cast<float>(above.count));
  return {.min = std::min(end_at(low), hi), .max = hi};
}

Ends means_of(ValueFormat format, std::span<const float> values) {
  const float sum = kernels::sum_of_magnitudes(values);
  if (!std::isfinite(sum)) {  // the sum overflows although its terms do not: all that much smaller
    static_assert(kBlockValues < 1024);
    std::array<float, kBlockValues> storage;
    const std::span scaled = std::span(storage).first(values.size());
    std::ranges::transform(values, scaled.begin(), [](float v) { return v / 1024.0F; });
    const Ends ends = means_of(format, scaled);
    return {.min = end_at(1024.0F * float_from_bf16(ends.min)),
            .max = end_at(1024.0F * float_from_bf16(ends.max))};
  }
  if (format == ValueFormat::k2Bit) return two_means(values, sum);
  const std::uint16_t mean = end_at(sum / static_cast<float>(values.size()));
  return {.min = mean, .max = mean};
}

Ends ends_of(ValueFormat format, std::span<const float> values) {
  if (bits_of(format) <= 2) return means_of(format, values);
  const auto [least, most] = kernels::magnitude_range(values);
  return {.min = end_at(least), .max = end_at(most)};
}

kernels::Grid grid_between(ValueFormat format, Ends ends) {
  kernels::Grid grid{.lo = float_from_bf16(ends.min), .magnitude_bits = bits_of(format) - 1};
  const float width = float_from_bf16(ends.max) - grid.lo;
  const auto top = static_cast<float>((1U << grid.magnitude_bits) - 1U);
  if (top > 0.0F) grid.step = width / top;
  const float levels_per_unit =
      top / width;  // infinite or NaN where the grid is (almost) one point
  if (std::isfinite(levels_per_unit)) grid.levels_per_unit = levels_per_unit;
  return grid;
}

// The lowest kWidth bits of every kEvery bits.
template <unsigned kWidth, unsigned kEvery>
constexpr std::uint64_t kRepeated = [] {
  std::uint64_t mask = 0;
  for (unsigned at = 0; at < 64; at += kEvery) mask |= (~std::uint64_t{0} >> (64 - kWidth)) << at;
  return mask;
}();

// Codes of kWidth bits move between a byte each and side by side, eight at a time, in three steps
// that double or halve the distance between them.
template <unsigned kWidth>
std::uint64_t spread(std::uint64_t packed) {
  packed = (packed | packed << (32 - 4 * kWidth)) & kRepeated<4 * kWidth, 32>;
  packed = (packed | packed << (16 - 2 * kWidth)) & kRepeated<2 * kWidth, 16>;
  return (packed | packed << (8 - kWidth)) & kRepeated<kWidth, 8>;
}

template <unsigned kWidth>
std::uint64_t squeeze(std::uint64_t codes) {
  codes = (codes | codes >> (8 - kWidth)) & kRepeated<2 * kWidth, 16>;
  codes = (codes | codes >> (16 - 2 * kWidth)) & kRepeated<4 * kWidth, 32>;
  return codes | codes >> (32 - 4 * kWidth);
}

// The first code lies in the lowest bits of the first byte; unused bits of the last byte are zero.
template <unsigned kWidth>
void pack_as(std::span<const std::uint8_t> codes, std::byte* out) {
  std::uint64_t word = 0;
  std::size_t i = 0;
  for (; i + 8 <= codes.size(); i += 8, out += kWidth) {
    std::memcpy(&word, codes.data() + i, 8);
    word = squeeze<kWidth>(word);
    std::memcpy(out, &word, kWidth);
  }
  if (i == codes.size()) return;
  word = 0;
  std::memcpy(&word, codes.data() + i, codes.size() - i);
  word = squeeze<kWidth>(word);
  std::memcpy(out, &word, ((codes.size() - i) * kWidth + 7) / 8);
}

template <unsigned kWidth>
void unpack_as(const std::byte* in, std::span<std::uint8_t> codes) {
  std::size_t i = 0;
  for (; i + 8 <= codes.size(); i += 8, in += kWidth) {
    std::uint64_t word = 0;
    std::memcpy(&word, in, kWidth);
    word = spread<kWidth>(word);
    std::memcpy(codes.data() + i, &word, 8);
  }
  if (i == codes.size()) return;
  std::uint64_t word = 0;
  std::memcpy(&word, in, ((codes.size() - i) * kWidth + 7) / 8);
  word = spread<kWidth>(word);
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
  store_le(out, ends.min);
  if (format != ValueFormat::k1Bit) store_le(out + 2, ends.max);
  Codes storage;
  const std::span codes = std::span(storage).first(values.size());
  kernels::quantise(values, grid, codes);
  pack(codes, bits_of(format), out + grid_bytes(format));
  kernels::dequantise(codes, grid, values);
}

Ends read_ends(ValueFormat format, const std::byte* in) {
  const auto lo = load_le<std::uint16_t>(in);
  return {.min = lo, .max = format == ValueFormat::k1Bit ? lo : load_le<std::uint16_t>(in + 2)};
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
    if (status.ok() && (ends.max >= kInfinity || ends.min > ends.max)) status = not_finite(first);
  });
  if (status.ok() && !padding_is_zero(in, count % kBlockValues * bits_of(format))) {
    return corrupt_payload("values: padding is not zero");
  }
  return status;
}

}  // namespace

std::string_view name_of(ValueFormat format) {
  return kFormatNames.at(static_cast<std::size_t>(format));
}

bool is_value_format(std::uint8_t wire) { return wire < kFormatNames.size(); }

unsigned bits_of(ValueFormat format) { return kFormatBits.at(static_cast<std::size_t>(format)); }

Result<ValueFormat> parse_value_format(std::string_view name) {
  const auto* const found = std::ranges::find(kFormatNames, name);
  if (found != kFormatNames.end())
    return ValueFormat{static_cast<std::uint8_t>(found - kFormatNames.begin())};
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
