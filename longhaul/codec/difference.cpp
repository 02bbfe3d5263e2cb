#include "longhaul/codec/difference.h"

#include <algorithm>
#include <cmath>

#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"

namespace longhaul {

// Calls changed(i) for each element that a sparse message names; true: there was a dense one too.
template <typename Changed>
bool DifferenceReader::subtract_told(std::size_t first, std::span<float> out,
                                     const Changed& changed) {
  if (told_.empty()) return false;
  if (first / kTileElements != tile_) decode(first / kTileElements);
  const std::size_t begin = first % kTileElements;
  bool is_dense = false;
  for (std::size_t i = 0; i < told_.size(); ++i) {
    const WeightedPayload& told = request_.told[i];
    const std::span<const float> values = told_[i].values;
    if (told.payload.view().is_dense()) {
      is_dense = true;
      kernels::add_scaled(values.subspan(begin, out.size()), -told.weight, out);
      continue;
    }
    const std::span<const std::uint16_t> positions = told_[i].positions;
    std::size_t& k = next_[i];
    if ((k > 0 && positions[k - 1] >= begin) || (k < positions.size() && positions[k] < begin))
      k = static_cast<std::size_t>(std::ranges::lower_bound(positions, begin) - positions.begin());
    for (; k < positions.size() && positions[k] < begin + out.size(); ++k) {
      out[positions[k] - begin] -= told.weight * values[k];
      changed(positions[k] - begin);
    }
  }
  return is_dense;
}

void DifferenceReader::read(std::size_t first, std::span<float> out) {
  kernels::difference(request_.shared.subspan(first, out.size()),
                      request_.position.subspan(first, out.size()), out);
  subtract_told(first, out, [](std::size_t) {});
}

float DifferenceReader::read_and_mark(std::size_t first, std::span<float> out, float cut,
                                      std::span<std::uint64_t> marks) {
  const float largest =
      kernels::difference_and_mark(request_.shared.subspan(first, out.size()),
                                   request_.position.subspan(first, out.size()), out, cut, marks);
  const bool is_dense = subtract_told(first, out, [&](std::size_t i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    const std::uint64_t is_marked = std::abs(out[i]) >= cut ? bit : 0;
    marks[i / 64] = (marks[i / 64] & ~bit) | is_marked;
  });
  if (is_dense) kernels::mark(out, cut, marks);
  return largest;
}

void DifferenceReader::preview(std::size_t first, std::span<float> out) {
  std::ranges::copy(request_.position.subspan(first, out.size()), out.begin());
  if (request_.preview) request_.preview(first, out);
  kernels::difference(request_.shared.subspan(first, out.size()), out, out);
  subtract_told(first, out, [](std::size_t) {});
}

void DifferenceReader::decode(std::size_t tile) {
  tile_ = tile;
  std::ranges::fill(next_, 0);
  for (std::size_t i = 0; i < told_.size(); ++i) {
    const PayloadView& payload = request_.told[i].payload.view();
    if (!payload.is_dense()) {
      payload.entries_of(tile, told_[i]);
      continue;
    }
    told_[i].values.assign(tile_size(tile, payload.elements()), 0.0F);
    payload.add_tile(tile, 1.0F, told_[i].values, scratch_);
  }
}

void read_difference(const TakeDifference& request, Workers& workers, std::span<float> out) {
  run_tiles(out.size(), workers, [&](std::size_t first, std::size_t count) {
    DifferenceReader(request).read(first, out.subspan(first, count));
  });
}

}  // namespace longhaul
