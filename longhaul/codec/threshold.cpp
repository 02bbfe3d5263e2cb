#include "longhaul/codec/threshold.h"

#include <array>

#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"

namespace longhaul {

ByteBuffer take_above(float threshold, const TakeOptions& request, ValueFormat format,
                      Workers& workers) {
  const std::size_t elements = request.residual.size();
  const PayloadHeader header{.kind = PayloadKind::kSparse, .format = format, .elements = elements};
  return write_tiles(
      header, {}, workers, [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
        const std::size_t size = tile_size(tile, elements);
        const std::span residual = request.residual.subspan(tile_begin(tile), size);
        std::array<std::uint64_t, kernels::mark_words(kTileElements)> storage;
        const std::span marks = std::span(storage).first(kernels::mark_words(size));
        kernels::feed_and_mark(residual, request.increment_of(tile_begin(tile), size),
                               request.residual_decay, threshold, marks);
        entries.resize(0);
        append_marked(marks, entries.positions);
        entries.gather(residual);
        write_positions(entries.positions, out);
        take_values(format, entries, residual, out);
      });
}

}  // namespace longhaul
