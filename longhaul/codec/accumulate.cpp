#include "longhaul/codec/accumulate.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"

namespace longhaul {
namespace {

using TileMarks = std::array<std::uint64_t, kernels::mark_words(kTileElements)>;

// Calls visit(tile, sum) for every tile, several at once. The sum stays in the cache while everyone
// adds to it.
void sum_tiles(std::span<const WeightedPayload> payloads, std::size_t elements, Workers& workers,
               const std::function<void(std::size_t tile, std::span<float> sum)>& visit) {
  for (const WeightedPayload& one : payloads) {
    if (!one.payload.empty()) LONGHAUL_CHECK_EQ(one.payload.view().elements(), elements);
  }
  run_tile_ranges(tile_count(elements), workers, [&](std::size_t tile, std::size_t end) {
    TileEntries scratch;
    std::vector<float> sum;
    for (; tile < end; ++tile) {
      sum.assign(tile_size(tile, elements), 0.0F);
      for (const WeightedPayload& one : payloads) {
        if (!one.payload.empty()) one.payload.view().add_tile(tile, one.weight, sum, scratch);
      }
      visit(tile, sum);
    }
  });
}

ByteBuffer encode_dense(std::span<const WeightedPayload> payloads, std::size_t elements,
                        Workers& workers) {
  ByteBuffer bytes(kPayloadHeaderBytes + elements * sizeof(float));
  const std::span body = std::span(bytes).subspan(kPayloadHeaderBytes);
  sum_tiles(payloads, elements, workers, [&](std::size_t tile, std::span<float> sum) {
    encode_values(ValueFormat::kFp32, sum,
                  body.subspan(tile_begin(tile) * sizeof(float), sum.size_bytes()));
  });
  seal_payload({.kind = PayloadKind::kDense, .format = ValueFormat::kFp32, .elements = elements},
               bytes);
  return bytes;
}

// Adds one tile of the sum to `sum`, which is zero, and marks the elements that any payload names.
void add_marked(std::span<const WeightedPayload> payloads, std::size_t tile, std::span<float> sum,
                TileEntries& entries, TileMarks& marks) {
  marks.fill(0);
  for (const WeightedPayload& one : payloads) {
    if (one.payload.empty()) continue;
    one.payload.view().entries_of(tile, entries);
    for (std::size_t i = 0; i < entries.positions.size(); ++i) {
      const std::uint16_t position = entries.positions[i];
      sum[position] += one.weight * entries.values[i];
      marks[position / 64] |= std::uint64_t{1} << (position % 64);
    }
  }
}

ByteBuffer encode_sparse(std::span<const WeightedPayload> payloads, std::size_t elements,
                         Workers& workers) {
  const PayloadHeader header{
      .kind = PayloadKind::kSparse, .format = ValueFormat::kFp32, .elements = elements};
  return write_tiles(header, {}, workers,
                     [&](std::size_t tile, ByteWriter& out, TileEntries& entries) {
                       TileMarks marks;
                       std::vector<float> sum(tile_size(tile, elements));
                       add_marked(payloads, tile, sum, entries, marks);
                       entries.resize(0);
                       append_marked(marks, entries.positions);
                       entries.gather(sum);
                       write_positions(entries.positions, out);
                       encode_values(header.format, entries.values,
                                     out.extend(value_bytes(header.format, entries.values.size())));
                     });
}

}  // namespace

void sum_payloads(std::span<const WeightedPayload> payloads, std::span<float> out,
                  Workers& workers) {
  sum_tiles(payloads, out.size(), workers, [&](std::size_t tile, std::span<float> sum) {
    kernels::stream(sum, out.subspan(tile_begin(tile), sum.size()));
  });
}

CheckedPayload encode_union(std::span<const WeightedPayload> payloads, std::size_t elements,
                            Workers& workers) {
  const auto is_dense = [](const WeightedPayload& one) {
    return !one.payload.empty() && one.payload.view().is_dense();
  };
  ByteBuffer bytes;
  if (std::ranges::none_of(payloads, is_dense)) bytes = encode_sparse(payloads, elements, workers);
  const std::size_t dense_bytes = kPayloadHeaderBytes + elements * sizeof(float);
  if (bytes.empty() || bytes.size() >= dense_bytes)
    bytes = encode_dense(payloads, elements, workers);
  return CheckedPayload::of_sealed(std::move(bytes), elements);
}

}  // namespace longhaul
