#include "longhaul/codec/position_coding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile.h"

namespace longhaul {
namespace {

constexpr unsigned kMaxRice = 16;

void write_varint(std::size_t value, ByteWriter& out) {
  for (; value >= 0x80; value >>= 7) out.u8(static_cast<std::uint8_t>(value | 0x80));
  out.u8(static_cast<std::uint8_t>(value));
}

// At most three bytes: 2^21 is beyond any count in a tile.
Result<std::size_t> read_varint(ByteReader& in) {
  std::size_t value = 0;
  for (unsigned shift = 0; shift < 21; shift += 7) {
    if (in.remaining() == 0) return corrupt_payload("varint: truncated");
    const std::uint8_t byte = in.u8();
    value |= std::size_t{byte & 0x7FU} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return corrupt_payload("varint: longer than three bytes");
}

std::size_t low_bytes(std::size_t count, unsigned rice) { return (count * rice + 7) / 8; }

// Elements skipped before position i.
unsigned gap_before(std::span<const std::uint16_t> positions, std::size_t i) {
  return i == 0 ? positions[0] : positions[i] - positions[i - 1] - 1U;
}

std::size_t unary_bits(std::span<const std::uint16_t> positions, unsigned rice) {
  std::size_t bits = positions.size() + (positions[0] >> rice);
  for (std::size_t i = 1; i < positions.size(); ++i) {
    bits += static_cast<unsigned>(positions[i] - positions[i - 1] - 1) >> rice;
  }
  return bits;
}

// The parameter and the unary bits that it needs. Starts where random positions would want it and
// walks downhill: real ones are clustered.
std::pair<unsigned, std::size_t> choose_rice(std::span<const std::uint16_t> positions) {
  const double mean_gap =
      static_cast<double>(positions.back()) / static_cast<double>(positions.size());
  const double guess = std::log2(std::max(1.0, mean_gap * 0.6931));
  const auto cost = [&](unsigned rice) {
    return positions.size() * rice + unary_bits(positions, rice);
  };
  auto best = static_cast<unsigned>(guess);
  std::size_t best_cost = cost(best);
  for (const int step : {-1, 1}) {
    while (true) {
      const int next = static_cast<int>(best) + step;
      if (next < 0 || next > static_cast<int>(kMaxRice)) break;
      const std::size_t next_cost = cost(static_cast<unsigned>(next));
      if (next_cost >= best_cost) break;
      best = static_cast<unsigned>(next);
      best_cost = next_cost;
    }
  }
  return {best, best_cost - positions.size() * best};
}

// Up to eight bytes at `offset`, zeros beyond the end.
std::uint64_t word_at(ByteView view, std::size_t offset) {
  if (offset + 8 <= view.size()) return load_le<std::uint64_t>(view.data() + offset);
  std::uint64_t word = 0;
  for (std::size_t i = offset; i < view.size(); ++i)
    word |= std::uint64_t{static_cast<std::uint8_t>(view[i])} << (8 * (i - offset));
  return word;
}

// Calls visit(low bits of a gap) for each of `count` gaps. Eight of them fill `rice` whole bytes,
// and four fit one 64-bit load, so no load waits for another.
template <typename Visit>
void for_each_low(ByteView low, std::size_t count, unsigned rice, const Visit& visit) {
  const std::uint64_t mask = (std::uint64_t{1} << rice) - 1;
  const unsigned half_byte = 4 * rice / 8;
  const unsigned half_shift = 4 * rice % 8;
  std::size_t at = 0;
  for (; count >= 8 && at + half_byte + 8 <= low.size(); count -= 8, at += rice) {
    const auto first = load_le<std::uint64_t>(low.data() + at);
    const std::uint64_t second = load_le<std::uint64_t>(low.data() + at + half_byte) >> half_shift;
    for (unsigned j = 0; j < 4; ++j)
      visit(static_cast<std::uint32_t>((first >> (j * rice)) & mask));
    for (unsigned j = 0; j < 4; ++j)
      visit(static_cast<std::uint32_t>((second >> (j * rice)) & mask));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bit = i * rice;
    visit(static_cast<std::uint32_t>((word_at(low, at + bit / 8) >> (bit % 8)) & mask));
  }
}

}  // namespace

void write_positions(std::span<const std::uint16_t> positions, ByteWriter& out) {
  write_varint(positions.size(), out);
  if (positions.empty()) return;
  const auto [rice, bits] = choose_rice(positions);
  const std::size_t unary_size = (bits + 7) / 8;
  out.u8(static_cast<std::uint8_t>(rice));
  write_varint(unary_size, out);
  const std::size_t low_size = low_bytes(positions.size(), rice);
  const std::span room = out.extend(low_size + unary_size);
  std::ranges::fill(room.subspan(low_size), std::byte{0});
  std::byte* low = room.data();
  std::byte* unary = room.data() + low_size;
  std::uint64_t window = 0;
  unsigned filled = 0;
  std::size_t bit = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const unsigned gap = gap_before(positions, i);
    window |= std::uint64_t{gap & ((1U << rice) - 1U)} << filled;
    for (filled += rice; filled >= 8; filled -= 8) {
      *low++ = static_cast<std::byte>(window);
      window >>= 8;
    }
    bit += gap >> rice;
    unary[bit / 8] |= std::byte{1} << (bit % 8);
    ++bit;
  }
  if (filled > 0) *low = static_cast<std::byte>(window);
}

Result<CodedTile> read_positions(ByteReader& in, std::size_t tile_elements) {
  const std::size_t count = LONGHAUL_TRY(read_varint(in));
  if (count > tile_elements) return corrupt_payload("positions: more than the tile has elements");
  CodedTile coded;
  coded.count = count;
  if (coded.count == 0) return coded;
  if (in.remaining() == 0) return corrupt_payload("positions: truncated");
  coded.rice = in.u8();
  if (coded.rice > kMaxRice) return corrupt_payload("positions: rice parameter too large");
  const std::size_t unary_size = LONGHAUL_TRY(read_varint(in));
  if (in.remaining() < low_bytes(coded.count, coded.rice) + unary_size)
    return corrupt_payload("positions: truncated");
  coded.low = in.bytes(low_bytes(coded.count, coded.rice));
  coded.unary = in.bytes(unary_size);
  if (!padding_is_zero(coded.low, coded.count * coded.rice)) {
    return corrupt_payload("positions: padding is not zero");
  }
  // The gaps are not negative, so positions ascend, and the last one tells whether all are inside.
  std::size_t ones = 0;
  std::size_t last_one = 0;
  for (std::size_t offset = 0; offset < coded.unary.size(); offset += 8) {
    const std::uint64_t word = word_at(coded.unary, offset);
    ones += static_cast<std::size_t>(std::popcount(word));
    if (word != 0) last_one = 8 * offset + 63 - static_cast<std::size_t>(std::countl_zero(word));
  }
  if (ones != coded.count)
    return corrupt_payload("positions: wrong number of ends in the unary part");
  if (last_one / 8 + 1 != coded.unary.size())
    return corrupt_payload("positions: bytes after the last end");
  std::size_t last = ((last_one + 1 - coded.count) << coded.rice) + coded.count - 1;
  for_each_low(coded.low, coded.count, coded.rice, [&](std::uint32_t low) { last += low; });
  if (last >= tile_elements) return corrupt_payload("positions: beyond the end of the tile");
  return coded;
}

void decode_positions(const CodedTile& coded, Scratch<std::uint16_t>& positions) {
  positions.resize(coded.count + kernels::kSetBitsSlack);
  kernels::set_bits(coded.unary, positions);
  positions.resize(coded.count);
  // The i-th end stands at bit i + (sum of the high parts up to i), and a position is i + (sum of
  // the gaps up to i), which makes it (end << rice) + (sum of the low parts) - i · (2^rice - 1).
  // Modulo 2^16, as it ends below that.
  std::uint16_t* position = positions.data();
  const std::uint32_t per_end = (1U << coded.rice) - 1U;
  std::uint32_t lows = per_end;
  for_each_low(coded.low, coded.count, coded.rice, [&](std::uint32_t low) {
    lows += low - per_end;
    *position = static_cast<std::uint16_t>((std::uint32_t{*position} << coded.rice) + lows);
    ++position;
  });
}

double expected_position_bits(double density) {
  if (density <= 0.0) return 0.0;
  double best = 1.0 / density;  // rice = 0: the bitmap
  for (unsigned rice = 1; rice <= kMaxRice; ++rice) {
    const double tail =
        std::pow(1.0 - density, std::exp2(rice));  // chance that a gap needs another zero
    best = std::min(best, rice + 1.0 + tail / (1.0 - tail));
  }
  return best;
}

}  // namespace longhaul
