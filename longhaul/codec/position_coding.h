// Ascending positions in a tile as Rice-coded gaps. The low `rice` bits of each gap lie packed side
// by side, the rest in unary (that many zeros, then a one) in a bit string of its own: two streams
// instead of one let a decoder find each position without waiting for the length of the one before.
// With rice = 0 the unary string is a plain bitmap, so dense tiles need no form of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul {

// Where the positions of one tile, and their values, lie in a payload.
struct CodedTile {
  std::size_t count = 0;
  unsigned rice = 0;
  ByteView low;
  ByteView unary;
  ByteView values;        // this and the next: set by the reader of the payload
  std::size_t first = 0;  // of its values among those of the payload
};

// Writes: count (varint), then, if not zero: rice (u8), bytes of unary (varint), low bits, unary
// bits.
void write_positions(std::span<const std::uint16_t> positions, ByteWriter& out);

// Reads and checks: exactly `count` ascending positions, all below `tile_elements`.
Result<CodedTile> read_positions(ByteReader& in, std::size_t tile_elements);

// `coded` comes from read_positions(); makes `positions` as long as coded.count.
void decode_positions(const CodedTile& coded, Scratch<std::uint16_t>& positions);

// Mean bits per position when a share `density` of the elements is kept at random.
double expected_position_bits(double density);

}  // namespace longhaul
