#include "longhaul/codec/threshold.h"

#include <array>

#include "longhaul/codec/sparse_size.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"

namespace longhaul {

ByteBuffer Threshold::take(const TakeOptions& request) {
  const std::size_t elements = request.residual.size();
  const PayloadHeader header{.kind = PayloadKind::kSparse, .format = format_, .elements = elements};
  return write_tiles(header, {}, workers_,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       const std::size_t size = tile_size(tile, elements);
                       const std::span residual = request.residual.subspan(tile_begin(tile), size);
                       std::array<std::uint64_t, kernels::mark_words(kTileElements)> storage;
                       const std::span marks = std::span(storage).first(kernels::mark_words(size));
                       kernels::feed_and_mark(residual, request.feed().part(tile_begin(tile), size),
                                              threshold_, marks);
                       entries.resize(0);
                       append_marked(marks, entries.positions);
                       entries.gather(residual);
                       write_positions(entries.positions, out);
                       take_values(format_, entries, residual, out);
                     });
}

double Threshold::expected_bytes(std::size_t elements, double keep_ratio) const {
  return expected_sparse_bytes(format_, elements, kept_count(elements, keep_ratio));
}

}  // namespace longhaul
