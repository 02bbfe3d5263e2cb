// The bodies of payloads: reading and checking them, and decoding them tile by tile.
#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/codec/kernels.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

Result<RandomSubset> read_subset(ByteReader& in) {
  if (in.remaining() < RandomSubset::kWireBytes) return corrupt_payload("random subset: truncated");
  const std::uint64_t seed = in.u64();
  const std::uint32_t per_tile = in.u32();
  if (per_tile == 0 || per_tile > kTileElements)
    return corrupt_payload("random subset: impossible size");
  return RandomSubset{.seed = seed, .per_tile = per_tile};
}

}  // namespace

Status PayloadView::read_body(ByteView body) {
  ByteReader in(body);
  switch (header_.kind) {
    case PayloadKind::kDense:
      return read_dense(body);
    case PayloadKind::kSparse:
      return read_tiles(in);
    case PayloadKind::kRandom:
      subset_ = LONGHAUL_TRY(read_subset(in));
      return read_random(in);
    case PayloadKind::kRandomSparse:
      subset_ = LONGHAUL_TRY(read_subset(in));
      return read_tiles(in);
    case PayloadKind::kLowRank:
      return read_low_rank(in);
  }
  return corrupt_payload("unknown kind");
}

Status PayloadView::check_finite_values(ByteView in, std::size_t count) const {
  if (is_sealed_here_) return Done{};
  return check_values(header_.format, in, count);
}

Status PayloadView::read_dense(ByteView body) {
  // Compared in the order that cannot overflow: no format packs more than eight values into a byte.
  if (body.size() < elements() / 8 || body.size() != value_bytes(header_.format, elements()))
    return corrupt_payload("dense: wrong length");
  value_bytes_ = body;
  values_ = elements();
  return check_finite_values(body, elements());
}

// Tiles in order, each with its positions below the size of the tile or of its subset, and nothing
// after them.
Status PayloadView::read_tiles(ByteReader& in) {
  const bool is_in_subset = header_.kind == PayloadKind::kRandomSparse;
  const std::size_t tiles = tile_count(elements());
  // Even an empty tile takes a byte: what is too short for its tiles is refused before room is made
  // for them.
  if (in.remaining() < tiles) return corrupt_payload("fewer bytes than tiles");
  tiles_.reserve(tiles);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::size_t size = tile_size(tile, elements());
    Result<CodedTile> coded = read_positions(in, is_in_subset ? subset_.count_in(size) : size);
    if (!coded.ok()) return std::move(coded).error().within("tile " + std::to_string(tile));
    const std::size_t bytes = value_bytes(header_.format, coded->count);
    if (in.remaining() < bytes)
      return corrupt_payload("tile " + std::to_string(tile) + ": values truncated");
    coded->values = in.bytes(bytes);
    const Status finite = check_finite_values(coded->values, coded->count);
    if (!finite.ok()) return Error(finite.error()).within("tile " + std::to_string(tile));
    coded->first = values_;
    values_ += coded->count;
    tiles_.push_back(*coded);
  }
  if (in.remaining() > 0) return corrupt_payload("bytes after the last tile");
  if (is_sealed_here_) keep_positions();
  return Done{};
}

void PayloadView::keep_positions() {
  positions_.reserve(values_);
  Scratch<std::uint16_t> decoded;
  for (const CodedTile& tile : tiles_) {
    decode_positions(tile, decoded);
    positions_.insert(positions_.end(), decoded.begin(), decoded.end());
  }
}

Status PayloadView::read_random(ByteReader& in) {
  value_bytes_ = in.bytes(in.remaining());
  values_ = subset_.count_of(elements());
  std::size_t begin = 0;
  for (std::size_t tile = 0; tile < tile_count(elements()); ++tile) {
    const std::size_t count = subset_.count_in(tile_size(tile, elements()));
    const std::size_t size = value_bytes(header_.format, count);
    if (value_bytes_.size() - begin < size)
      return corrupt_payload("random subset: values truncated");
    const Status finite = check_finite_values(value_bytes_.subspan(begin, size), count);
    if (!finite.ok()) return Error(finite.error()).within("tile " + std::to_string(tile));
    begin += size;
  }
  if (begin != value_bytes_.size())
    return corrupt_payload("random subset: bytes after the last value");
  return Done{};
}

void PayloadView::entries_of(std::size_t tile, TileEntries& entries) const {
  LONGHAUL_CHECK(!is_dense());
  const std::size_t size = tile_size(tile, elements());
  if (header_.kind == PayloadKind::kRandom) {
    entries.resize(subset_.count_in(size));
    subset_.draw(tile, size, entries.positions);
    const std::size_t full_tile = value_bytes(header_.format, subset_.per_tile);
    const std::size_t bytes = value_bytes(header_.format, entries.values.size());
    return decode_values(header_.format, value_bytes_.subspan(tile * full_tile, bytes),
                         entries.values);
  }
  const CodedTile& coded = tiles_.at(tile);
  entries.resize(coded.count);
  if (positions_.empty()) {
    decode_positions(coded, entries.positions);
  } else {
    std::ranges::copy(std::span(positions_).subspan(coded.first, coded.count),
                      entries.positions.begin());
  }
  decode_values(header_.format, coded.values, entries.values);
  if (header_.kind == PayloadKind::kRandomSparse) subset_.locate(tile, size, entries.positions);
}

void PayloadView::add_dense_tile(std::size_t tile, float weight, std::span<float> out,
                                 TileEntries& scratch) const {
  // A piece that stays in L1 between decoding and adding, and ends where a block of values ends.
  constexpr std::size_t kPieceValues = 8 * kBlockValues;
  const ValueFormat format = header_.format;
  scratch.values.resize(kPieceValues);
  const std::size_t begin = value_bytes(format, tile_begin(tile));
  for (std::size_t first = 0; first < out.size(); first += kPieceValues) {
    const std::size_t here = std::min(kPieceValues, out.size() - first);
    const std::span piece = std::span(scratch.values).first(here);
    const std::size_t offset = begin + value_bytes(format, first);
    decode_values(format, value_bytes_.subspan(offset, value_bytes(format, here)), piece);
    kernels::add_scaled(piece, weight, out.subspan(first, here));
  }
}

void PayloadView::add_tile(std::size_t tile, float weight, std::span<float> out,
                           TileEntries& scratch) const {
  LONGHAUL_CHECK_EQ(out.size(), tile_size(tile, elements()));
  if (header_.kind == PayloadKind::kDense) return add_dense_tile(tile, weight, out, scratch);
  if (header_.kind == PayloadKind::kLowRank) return add_low_rank_tile(tile, weight, out, scratch);
  entries_of(tile, scratch);
  for (std::size_t i = 0; i < scratch.positions.size(); ++i)
    out[scratch.positions[i]] += weight * scratch.values[i];
}

}  // namespace longhaul
