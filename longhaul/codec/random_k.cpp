#include "longhaul/codec/random_k.h"

#include <algorithm>

#include "longhaul/codec/random_subset.h"
#include "longhaul/codec/sparse_size.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"

namespace longhaul {
namespace {

constexpr double kTopShare = 0.2;  // of the subset, which makes up the rest of the keep ratio

ByteBuffer subset_prefix(const RandomSubset& subset) {
  ByteWriter out;
  out.u64(subset.seed);
  out.u32(subset.per_tile);
  return std::move(out).release();
}

RandomSubset cocktail_subset(double keep_ratio, std::uint64_t seed) {
  return subset_of(std::min(1.0, keep_ratio / kTopShare), seed);
}

// Feeds a tile, and gathers its share of the subset. Returns the residual of the tile.
std::span<float> gather_subset(const TakeOptions& request, const RandomSubset& subset,
                               std::size_t tile, TileEntries& entries) {
  const std::span residual =
      request.feed(tile_begin(tile), tile_size(tile, request.residual.size()));
  entries.resize(subset.count_in(residual.size()));
  subset.draw(tile, residual.size(), entries.positions);
  entries.gather(residual);
  return residual;
}

}  // namespace

ByteBuffer take_random(const TakeOptions& request, ValueFormat format, Workers& workers) {
  const RandomSubset subset = subset_of(request.keep_ratio, request.seed);
  const PayloadHeader header{
      .kind = PayloadKind::kRandom, .format = format, .elements = request.residual.size()};
  return write_tiles(header, subset_prefix(subset), workers,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       const std::span residual = gather_subset(request, subset, tile, entries);
                       take_values(format, entries, residual, out);
                     });
}

std::size_t random_k_bytes(ValueFormat format, std::size_t elements, double keep_ratio) {
  const RandomSubset subset = subset_of(keep_ratio, 0);
  const std::size_t full_tiles = elements / kTileElements * value_bytes(format, subset.per_tile);
  const std::size_t last_tile = value_bytes(format, subset.count_in(elements % kTileElements));
  return kPayloadHeaderBytes + RandomSubset::kWireBytes + full_tiles + last_tile;
}

ByteBuffer take_cocktail(const TakeOptions& request, ValueFormat format, Workers& workers) {
  const RandomSubset subset = cocktail_subset(request.keep_ratio, request.seed);
  const PayloadHeader header{
      .kind = PayloadKind::kRandomSparse, .format = format, .elements = request.residual.size()};
  return write_tiles(header, subset_prefix(subset), workers,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       TileEntries drawn;
                       const std::span residual = gather_subset(request, subset, tile, drawn);
                       Scratch<std::uint16_t> ranks;
                       select_top(drawn.values, kept_count(drawn.values.size(), kTopShare),
                                  0x3F800000U, ranks);
                       write_positions(ranks, out);
                       entries.resize(ranks.size());
                       for (std::size_t i = 0; i < ranks.size(); ++i)
                         entries.positions[i] = drawn.positions[ranks[i]];
                       entries.gather(residual);
                       take_values(format, entries, residual, out);
                     });
}

double cocktail_bytes(ValueFormat format, std::size_t elements, double keep_ratio) {
  const std::size_t drawn = cocktail_subset(keep_ratio, 0).count_of(elements);
  if (drawn == 0) return kPayloadHeaderBytes + RandomSubset::kWireBytes;
  // Positions are counted inside the subset: as if it were the whole update, but over as many
  // tiles.
  const auto tiles = static_cast<double>(tile_count(elements) - tile_count(drawn));
  return RandomSubset::kWireBytes + 4.0 * tiles +
         expected_sparse_bytes(format, drawn, kept_count(drawn, kTopShare));
}

}  // namespace longhaul
