#include "longhaul/codec/tile_writer.h"

#include <utility>

#include "longhaul/codec/value_format.h"

namespace longhaul {

std::vector<std::size_t> split_tiles(std::size_t tiles, const Workers& workers) {
  const std::size_t wanted = workers.count() == 1 ? 1 : 4 * workers.count();
  const std::size_t count = std::clamp<std::size_t>(tiles, 1, wanted);
  std::vector<std::size_t> cuts(count + 1);
  for (std::size_t i = 0; i <= count; ++i) cuts[i] = i * tiles / count;
  return cuts;
}

void run_tile_ranges(std::size_t tiles, Workers& workers,
                     const std::function<void(std::size_t first, std::size_t end)>& work) {
  const std::vector<std::size_t> cuts = split_tiles(tiles, workers);
  workers.run(cuts.size() - 1, [&](std::size_t i) { work(cuts[i], cuts[i + 1]); });
}

void run_tiles(std::size_t elements, Workers& workers,
               const std::function<void(std::size_t first, std::size_t count)>& work) {
  run_tile_ranges(tile_count(elements), workers, [&](std::size_t tile, std::size_t end) {
    for (; tile < end; ++tile) work(tile_begin(tile), tile_size(tile, elements));
  });
}

ByteBuffer write_tiles(const PayloadHeader& header, ByteBuffer prefix, Workers& workers,
                       const WriteTile& write) {
  const std::vector<std::size_t> cuts =
      split_tiles(tile_count(static_cast<std::size_t>(header.elements)), workers);
  std::vector<ByteBuffer> parts(cuts.size());
  parts[0] = std::move(prefix);
  workers.run(cuts.size() - 1, [&](std::size_t i) {
    ByteWriter out;
    TileEntries scratch;
    for (std::size_t tile = cuts[i]; tile < cuts[i + 1]; ++tile) write(tile, out, scratch);
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
