#include "longhaul/codec/chunk_top_k.h"

#include <algorithm>

#include "longhaul/codec/dense.h"
#include "longhaul/codec/sparse_size.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"

namespace longhaul {
namespace {

static_assert(kTileElements % kChunkElements == 0);

std::size_t kept_in_all_chunks(std::size_t elements, double keep_ratio) {
  const std::size_t rest = elements % kChunkElements;
  return elements / kChunkElements * kept_count(kChunkElements, keep_ratio) +
         (rest == 0 ? 0 : kept_count(rest, keep_ratio));
}

// Feeds one tile and selects in each of its chunks while that is in L1.
void select_in_chunks(const TakeOptions& request, std::size_t tile_first,
                      std::span<const float> tile, TileEntries& entries) {
  entries.resize(0);
  std::uint32_t hint = 0x3F800000U;  // 1.0; each chunk hints where its neighbour's cut is
  for (std::size_t first = 0; first < tile.size(); first += kChunkElements) {
    const std::size_t here = std::min(kChunkElements, tile.size() - first);
    const std::span chunk = request.feed(tile_first + first, here);
    const std::size_t before = entries.positions.size();
    hint = select_top(chunk, kept_count(here, request.keep_ratio), hint, entries.positions);
    for (std::uint16_t& position : std::span(entries.positions).subspan(before)) {
      position = static_cast<std::uint16_t>(position + first);
    }
  }
  entries.gather(tile);
}

}  // namespace

ByteBuffer take_top_of_chunks(const TakeOptions& request, ValueFormat format, Workers& workers) {
  const std::size_t elements = request.residual.size();
  if (dense_is_smaller(format, elements, kept_in_all_chunks(elements, request.keep_ratio)))
    return take_dense(request, format, workers);
  const PayloadHeader header{.kind = PayloadKind::kSparse, .format = format, .elements = elements};
  return write_tiles(header, {}, workers,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       const std::span residual =
                           request.residual.subspan(tile_begin(tile), tile_size(tile, elements));
                       select_in_chunks(request, tile_begin(tile), residual, entries);
                       write_positions(entries.positions, out);
                       take_values(format, entries, residual, out);
                     });
}

double chunk_top_k_bytes(ValueFormat format, std::size_t elements, double keep_ratio) {
  const std::size_t kept = kept_in_all_chunks(elements, keep_ratio);
  if (dense_is_smaller(format, elements, kept))
    return static_cast<double>(dense_bytes(format, elements));
  return expected_sparse_bytes(format, elements, kept);
}

}  // namespace longhaul
