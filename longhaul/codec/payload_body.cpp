#include "longhaul/codec/payload_body.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/codec/kernels.h"

namespace longhaul {
namespace {

Status check_finite_values(const BodyContext& context, ByteView in, std::size_t count) {
  if (context.is_sealed_here) return Done{};
  return check_values(context.format, in, count);
}

Result<RandomSubset> read_subset(ByteReader& in) {
  if (in.remaining() < RandomSubset::kWireBytes) return corrupt_payload("random subset: truncated");
  const std::uint64_t seed = in.u64();
  const std::uint32_t per_tile = in.u32();
  if (per_tile == 0 || per_tile > kTileElements)
    return corrupt_payload("random subset: impossible size");
  return RandomSubset{.seed = seed, .per_tile = per_tile};
}

void keep_positions(SparseBody& body) {
  body.positions.reserve(body.value_count);
  Scratch<std::uint16_t> decoded;
  for (const SparseBody::Tile& tile : body.tiles) {
    decode_positions(tile.positions, decoded);
    body.positions.insert(body.positions.end(), decoded.begin(), decoded.end());
  }
}

// Tiles in order, each with its positions below tile_limit(tile), and nothing after them.
template <typename TileLimit>
Result<SparseBody> read_tiles(ByteReader& in, const BodyContext& context,
                              const TileLimit& tile_limit) {
  SparseBody body{.context = context, .tiles = {}};
  const std::size_t tiles = tile_count(context.elements);
  // Even an empty tile takes a byte: what is too short for its tiles is refused before room is made
  // for them.
  if (in.remaining() < tiles) return corrupt_payload("fewer bytes than tiles");
  body.tiles.reserve(tiles);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    Result<CodedPositions> positions = read_positions(in, tile_limit(tile));
    if (!positions.ok()) return std::move(positions).error().within("tile " + std::to_string(tile));
    const std::size_t bytes = value_bytes(context.format, positions->count);
    if (in.remaining() < bytes)
      return corrupt_payload("tile " + std::to_string(tile) + ": values truncated");
    const ByteView values = in.bytes(bytes);
    const Status finite = check_finite_values(context, values, positions->count);
    if (!finite.ok()) return Error(finite.error()).within("tile " + std::to_string(tile));
    body.tiles.push_back({.positions = *positions, .values = values, .first = body.value_count});
    body.value_count += positions->count;
  }
  if (in.remaining() > 0) return corrupt_payload("bytes after the last tile");
  if (context.is_sealed_here) keep_positions(body);
  return body;
}

}  // namespace

Result<DenseBody> DenseBody::parse(ByteView bytes, const BodyContext& context) {
  // Compared in the order that cannot overflow: no format packs more than eight values into a byte.
  if (bytes.size() < context.elements / 8 ||
      bytes.size() != value_bytes(context.format, context.elements)) {
    return corrupt_payload("dense: wrong length");
  }
  LONGHAUL_TRY(check_finite_values(context, bytes, context.elements));
  return DenseBody{.context = context, .bytes = bytes};
}

void DenseBody::add_tile(std::size_t tile, float weight, std::span<float> out,
                         TileEntries& scratch) const {
  // A piece that stays in L1 between decoding and adding, and ends where a block of values ends.
  constexpr std::size_t kPieceValues = 8 * kBlockValues;
  scratch.values.resize(kPieceValues);
  const std::size_t begin = value_bytes(context.format, tile_begin(tile));
  for (std::size_t first = 0; first < out.size(); first += kPieceValues) {
    const std::size_t here = std::min(kPieceValues, out.size() - first);
    const std::span piece = std::span(scratch.values).first(here);
    const std::size_t offset = begin + value_bytes(context.format, first);
    decode_values(context.format, bytes.subspan(offset, value_bytes(context.format, here)), piece);
    kernels::add_scaled(piece, weight, out.subspan(first, here));
  }
}

Result<SparseBody> SparseBody::parse(ByteView bytes, const BodyContext& context) {
  ByteReader in(bytes);
  return read_tiles(in, context,
                    [&](std::size_t tile) { return tile_size(tile, context.elements); });
}

void SparseBody::entries_of(std::size_t tile, TileEntries& entries) const {
  const Tile& coded = tiles.at(tile);
  entries.resize(coded.positions.count);
  if (positions.empty()) {
    decode_positions(coded.positions, entries.positions);
  } else {
    std::ranges::copy(std::span(positions).subspan(coded.first, coded.positions.count),
                      entries.positions.begin());
  }
  decode_values(context.format, coded.values, entries.values);
}

Result<RandomBody> RandomBody::parse(ByteView bytes, const BodyContext& context) {
  ByteReader in(bytes);
  const RandomSubset subset = LONGHAUL_TRY(read_subset(in));
  const ByteView values = in.bytes(in.remaining());
  std::size_t begin = 0;
  for (std::size_t tile = 0; tile < tile_count(context.elements); ++tile) {
    const std::size_t count = subset.count_in(tile_size(tile, context.elements));
    const std::size_t size = value_bytes(context.format, count);
    if (values.size() - begin < size) return corrupt_payload("random subset: values truncated");
    const Status finite = check_finite_values(context, values.subspan(begin, size), count);
    if (!finite.ok()) return Error(finite.error()).within("tile " + std::to_string(tile));
    begin += size;
  }
  if (begin != values.size()) return corrupt_payload("random subset: bytes after the last value");
  return RandomBody{.context = context, .subset = subset, .bytes = values};
}

void RandomBody::entries_of(std::size_t tile, TileEntries& entries) const {
  const std::size_t elements = tile_size(tile, context.elements);
  entries.resize(subset.count_in(elements));
  subset.draw(tile, elements, entries.positions);
  const std::size_t full_tile = value_bytes(context.format, subset.per_tile);
  const std::size_t size = value_bytes(context.format, entries.values.size());
  decode_values(context.format, bytes.subspan(tile * full_tile, size), entries.values);
}

Result<RandomSparseBody> RandomSparseBody::parse(ByteView bytes, const BodyContext& context) {
  ByteReader in(bytes);
  const RandomSubset subset = LONGHAUL_TRY(read_subset(in));
  Result<SparseBody> kept = read_tiles(in, context, [&](std::size_t tile) {
    return subset.count_in(tile_size(tile, context.elements));
  });
  if (!kept.ok()) return std::move(kept).error();
  return RandomSparseBody{.subset = subset, .kept = std::move(kept).value()};
}

void RandomSparseBody::entries_of(std::size_t tile, TileEntries& entries) const {
  kept.entries_of(tile, entries);
  subset.locate(tile, tile_size(tile, kept.context.elements), entries.positions);
}

}  // namespace longhaul
