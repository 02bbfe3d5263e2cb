#include "longhaul/codec/tile_writer.h"

#include <utility>

#include "longhaul/codec/value_format.h"

namespace longhaul {

std::vector<TileRange> split_tiles(std::size_t tiles, const Workers& workers) {
  const std::size_t wanted = workers.count() == 1 ? 1 : 4 * workers.count();
  const std::size_t count = std::clamp<std::size_t>(tiles, 1, wanted);
  std::vector<TileRange> ranges(count);
  for (std::size_t i = 0; i < count; ++i)
    ranges[i] = {.first = i * tiles / count, .end = (i + 1) * tiles / count};
  return ranges;
}

void run_tiles(std::size_t elements, Workers& workers,
               const std::function<void(std::size_t first, std::size_t count)>& work) {
  const std::vector<TileRange> ranges = split_tiles(tile_count(elements), workers);
  workers.run(ranges.size(), [&](std::size_t i) {
    for (std::size_t tile = ranges[i].first; tile < ranges[i].end; ++tile)
      work(tile_begin(tile), tile_size(tile, elements));
  });
}

ByteBuffer write_tiles(const PayloadHeader& header, ByteBuffer prefix, Workers& workers,
                       const WriteTile& write) {
  const std::vector<TileRange> ranges =
      split_tiles(tile_count(static_cast<std::size_t>(header.elements)), workers);
  std::vector<ByteBuffer> parts(ranges.size() + 1);
  parts[0] = std::move(prefix);
  workers.run(ranges.size(), [&](std::size_t i) {
    ByteWriter out;
    TileEntries scratch;
    for (std::size_t tile = ranges[i].first; tile < ranges[i].end; ++tile)
      write(tile, out, scratch);
    parts[i + 1] = std::move(out).release();
  });
  return seal_payload(header, parts);
}

void take_values(ValueFormat format, TileEntries& entries, std::span<float> residual,
                 ByteWriter& out) {
  encode_values(format, entries.values, out.extend(value_bytes(format, entries.values.size())));
  if (residual.empty()) return;
  for (std::size_t i = 0; i < entries.positions.size(); ++i)
    residual[entries.positions[i]] -= entries.values[i];
}

}  // namespace longhaul
