#include "longhaul/codec/accumulate.h"

#include <algorithm>
#include <array>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/sparse_size.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"

namespace longhaul {
namespace {

using TileMarks = std::array<std::uint64_t, kernels::mark_words(kTileElements)>;

void mark_union(std::span<const Contribution> contributions, std::size_t tile, TileEntries& scratch,
                TileMarks& marks) {
  marks.fill(0);
  for (const Contribution& contribution : contributions) {
    contribution.payload->entries_of(tile, scratch);
    for (const std::uint16_t position : scratch.positions)
      marks[position / 64] |= std::uint64_t{1} << (position % 64);
  }
}

ByteBuffer encode_dense(std::span<const float> sum) {
  ByteBuffer payload(kPayloadHeaderBytes + sum.size_bytes());
  std::ranges::copy(std::as_bytes(sum), payload.begin() + kPayloadHeaderBytes);
  seal_payload({.kind = PayloadKind::kDense, .format = ValueFormat::kFp32, .elements = sum.size()},
               payload);
  return payload;
}

}  // namespace

void sum_payloads(std::span<const Contribution> contributions, std::span<float> out,
                  Workers& workers) {
  for (const Contribution& contribution : contributions)
    LONGHAUL_CHECK_EQ(contribution.payload->elements(), out.size());
  const std::vector<TileRange> ranges = split_tiles(tile_count(out.size()), workers);
  workers.run(ranges.size(), [&](std::size_t i) {
    TileEntries scratch;
    std::vector<float> sum;  // one tile, which stays in the cache while everyone adds to it
    for (std::size_t tile = ranges[i].first; tile < ranges[i].end; ++tile) {
      sum.assign(tile_size(tile, out.size()), 0.0F);
      for (const Contribution& contribution : contributions) {
        contribution.payload->add_tile(tile, contribution.weight, sum, scratch);
      }
      kernels::stream(sum, out.subspan(tile_begin(tile), sum.size()));
    }
  });
}

ByteBuffer encode_union(std::span<const Contribution> contributions, std::span<const float> sum,
                        Workers& workers) {
  const auto is_dense = [](const Contribution& contribution) {
    return contribution.payload->is_dense();
  };
  if (std::ranges::any_of(contributions, is_dense)) return encode_dense(sum);
  const PayloadHeader header{
      .kind = PayloadKind::kSparse, .format = ValueFormat::kFp32, .elements = sum.size()};
  ByteBuffer sparse = write_tiles(
      header, {}, workers, [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
        TileMarks marks;
        mark_union(contributions, tile, entries, marks);
        const std::span part = sum.subspan(tile_begin(tile), tile_size(tile, sum.size()));
        entries.resize(0);
        append_marked(marks, entries.positions);
        entries.gather(part);
        write_positions(entries.positions, out);
        encode_values(header.format, entries.values,
                      out.extend(value_bytes(header.format, entries.values.size())));
      });
  const std::size_t dense_bytes = kPayloadHeaderBytes + sum.size_bytes();
  return sparse.size() < dense_bytes ? sparse : encode_dense(sum);
}

}  // namespace longhaul
