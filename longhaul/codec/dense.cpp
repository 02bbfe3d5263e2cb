#include "longhaul/codec/dense.h"

#include <algorithm>
#include <vector>

#include "longhaul/codec/tile_writer.h"

namespace longhaul {

ByteBuffer take_dense(const TakeOptions& request, ValueFormat format, Workers& workers) {
  constexpr std::size_t kPiece =
      8 * kBlockValues;  // stays in L1 between feeding, encoding and removing
  const std::size_t elements = request.residual.size();
  ByteBuffer payload(dense_bytes(format, elements));
  const std::span body = std::span(payload).subspan(kPayloadHeaderBytes);
  run_tile_ranges(tile_count(elements), workers, [&](std::size_t tile, std::size_t end_tile) {
    std::vector<float> scratch(kPiece);
    const std::size_t end = std::min(elements, tile_begin(end_tile));
    for (std::size_t first = tile_begin(tile); first < end; first += kPiece) {
      const std::size_t here = std::min(kPiece, end - first);
      const std::span residual = request.feed(first, here);
      const std::span values = std::span(scratch).first(here);
      std::ranges::copy(residual, values.begin());
      encode_values(format, values,
                    body.subspan(value_bytes(format, first), value_bytes(format, here)));
      kernels::subtract(values, residual);
    }
  });
  seal_payload({.kind = PayloadKind::kDense, .format = format, .elements = elements}, payload);
  return payload;
}

std::size_t dense_bytes(ValueFormat format, std::size_t elements) {
  return kPayloadHeaderBytes + value_bytes(format, elements);
}

}  // namespace longhaul
