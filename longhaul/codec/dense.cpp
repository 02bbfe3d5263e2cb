#include "longhaul/codec/dense.h"

#include <algorithm>
#include <vector>

#include "longhaul/codec/tile_writer.h"

namespace longhaul {
namespace {

constexpr std::size_t kPiece =
    8 * kBlockValues;  // stays in L1 between feeding, encoding and removing

void take_piece(ValueFormat format, std::span<float> residual, const kernels::Feed& feed,
                std::span<float> scratch, std::span<std::byte> out) {
  kernels::feed(residual, feed);
  std::ranges::copy(residual, scratch.begin());
  encode_values(format, scratch, out);
  kernels::subtract(scratch, residual);
}

}  // namespace

ByteBuffer Dense::take(const TakeOptions& request) {
  const std::size_t elements = request.residual.size();
  ByteBuffer payload(kPayloadHeaderBytes + value_bytes(format_, elements));
  const std::span body = std::span(payload).subspan(kPayloadHeaderBytes);
  const std::vector<TileRange> ranges = split_tiles(tile_count(elements), workers_);
  workers_.run(ranges.size(), [&](std::size_t i) {
    std::vector<float> scratch(kPiece);
    const std::size_t end = std::min(elements, tile_begin(ranges[i].end));
    for (std::size_t first = tile_begin(ranges[i].first); first < end; first += kPiece) {
      const std::size_t here = std::min(kPiece, end - first);
      take_piece(format_, request.residual.subspan(first, here), request.feed().part(first, here),
                 std::span(scratch).first(here),
                 body.subspan(value_bytes(format_, first), value_bytes(format_, here)));
    }
  });
  seal_payload({.kind = PayloadKind::kDense, .format = format_, .elements = elements}, payload);
  return payload;
}

double Dense::expected_bytes(std::size_t elements, double /*keep_ratio*/) const {
  return static_cast<double>(kPayloadHeaderBytes + value_bytes(format_, elements));
}

}  // namespace longhaul
