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
void select_in_chunks(std::span<float> residual, const kernels::Feed& feed, double keep_ratio,
                      TileEntries& entries) {
  entries.resize(0);
  std::uint32_t hint = 0x3F800000U;  // 1.0; each chunk hints where its neighbour's cut is
  for (std::size_t first = 0; first < residual.size(); first += kChunkElements) {
    const std::size_t here = std::min(kChunkElements, residual.size() - first);
    const std::span chunk = residual.subspan(first, here);
    kernels::feed(chunk, feed.part(first, here));
    const std::size_t before = entries.positions.size();
    hint = select_top(chunk, kept_count(here, keep_ratio), hint, entries.positions);
    for (std::uint16_t& position : std::span(entries.positions).subspan(before)) {
      position = static_cast<std::uint16_t>(position + first);
    }
  }
  entries.gather(residual);
}

}  // namespace

ByteBuffer ChunkTopK::take(const TakeOptions& request) {
  const std::size_t elements = request.residual.size();
  if (dense_is_smaller(format_, elements, kept_in_all_chunks(elements, request.keep_ratio))) {
    return Dense(format_, workers_).take(request);
  }
  const PayloadHeader header{.kind = PayloadKind::kSparse, .format = format_, .elements = elements};
  return write_tiles(header, {}, workers_,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       const std::size_t size = tile_size(tile, elements);
                       const std::span residual = request.residual.subspan(tile_begin(tile), size);
                       select_in_chunks(residual, request.feed().part(tile_begin(tile), size),
                                        request.keep_ratio, entries);
                       write_positions(entries.positions, out);
                       take_values(format_, entries, residual, out);
                     });
}

double ChunkTopK::expected_bytes(std::size_t elements, double keep_ratio) const {
  const std::size_t kept = kept_in_all_chunks(elements, keep_ratio);
  if (dense_is_smaller(format_, elements, kept))
    return Dense(format_, workers_).expected_bytes(elements, keep_ratio);
  return expected_sparse_bytes(format_, elements, kept);
}

}  // namespace longhaul
