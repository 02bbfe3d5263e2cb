#include "longhaul/codec/random_k.h"

#include <algorithm>

#include "longhaul/codec/random_subset.h"
#include "longhaul/codec/sparse_size.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"

namespace longhaul {
namespace {

ByteBuffer subset_prefix(const RandomSubset& subset) {
  ByteWriter out;
  out.u64(subset.seed);
  out.u32(subset.per_tile);
  return std::move(out).release();
}

RandomSubset cocktail_subset(double keep_ratio, std::uint64_t seed) {
  return subset_of(std::min(1.0, keep_ratio / Cocktail::kTopShare), seed);
}

// The tile's share of the subset, with the values that are now in the residual.
void gather_subset(const RandomSubset& subset, std::size_t tile, std::span<const float> residual,
                   TileEntries& entries) {
  entries.resize(subset.count_in(residual.size()));
  subset.draw(tile, residual.size(), entries.positions);
  entries.gather(residual);
}

}  // namespace

ByteBuffer RandomK::take(const TakeOptions& request) {
  const std::size_t elements = request.residual.size();
  const RandomSubset subset = subset_of(request.keep_ratio, request.seed);
  const PayloadHeader header{.kind = PayloadKind::kRandom, .format = format_, .elements = elements};
  return write_tiles(header, subset_prefix(subset), workers_,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       const std::size_t size = tile_size(tile, elements);
                       const std::span residual = request.residual.subspan(tile_begin(tile), size);
                       kernels::feed(residual, request.feed().part(tile_begin(tile), size));
                       gather_subset(subset, tile, residual, entries);
                       take_values(format_, entries, residual, out);
                     });
}

double RandomK::expected_bytes(std::size_t elements, double keep_ratio) const {
  const RandomSubset subset = subset_of(keep_ratio, 0);
  const std::size_t full_tiles = elements / kTileElements * value_bytes(format_, subset.per_tile);
  const std::size_t last_tile = value_bytes(format_, subset.count_in(elements % kTileElements));
  return static_cast<double>(kPayloadHeaderBytes + RandomSubset::kWireBytes + full_tiles +
                             last_tile);
}

ByteBuffer Cocktail::take(const TakeOptions& request) {
  const std::size_t elements = request.residual.size();
  const RandomSubset subset = cocktail_subset(request.keep_ratio, request.seed);
  const PayloadHeader header{
      .kind = PayloadKind::kRandomSparse, .format = format_, .elements = elements};
  return write_tiles(header, subset_prefix(subset), workers_,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       const std::size_t size = tile_size(tile, elements);
                       const std::span residual = request.residual.subspan(tile_begin(tile), size);
                       kernels::feed(residual, request.feed().part(tile_begin(tile), size));
                       TileEntries drawn;
                       gather_subset(subset, tile, residual, drawn);
                       Scratch<std::uint16_t> ranks;
                       select_top(drawn.values, kept_count(drawn.values.size(), kTopShare),
                                  0x3F800000U, ranks);
                       write_positions(ranks, out);
                       entries.resize(ranks.size());
                       for (std::size_t i = 0; i < ranks.size(); ++i)
                         entries.positions[i] = drawn.positions[ranks[i]];
                       entries.gather(residual);
                       take_values(format_, entries, residual, out);
                     });
}

double Cocktail::expected_bytes(std::size_t elements, double keep_ratio) const {
  const std::size_t drawn = cocktail_subset(keep_ratio, 0).count_of(elements);
  if (drawn == 0) return kPayloadHeaderBytes + RandomSubset::kWireBytes;
  // Positions are counted inside the subset: as if it were the whole update, but over as many
  // tiles.
  const auto tiles = static_cast<double>(tile_count(elements) - tile_count(drawn));
  return RandomSubset::kWireBytes + 4.0 * tiles +
         expected_sparse_bytes(format_, drawn, kept_count(drawn, kTopShare));
}

}  // namespace longhaul
