#include "longhaul/codec/update_reader.h"

#include <algorithm>
#include <cmath>

#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"

namespace longhaul {

// Calls changed(i) for each element that a sparse message names; true: there was a dense one too.
template <typename Changed>
bool UpdateReader::subtract_announced(std::size_t first, std::span<float> out,
                                      const Changed& changed) {
  if (decoded_.empty()) return false;
  if (first / kTileElements != tile_) decode(first / kTileElements);
  const std::size_t begin = first % kTileElements;
  bool is_dense = false;
  for (std::size_t i = 0; i < decoded_.size(); ++i) {
    const WeightedPayload& announced = request_.announced[i];
    const std::span<const float> values = decoded_[i].values;
    if (announced.payload.view().is_dense()) {
      is_dense = true;
      kernels::add_scaled(values.subspan(begin, out.size()), -announced.weight, out);
      continue;
    }
    const std::span<const std::uint16_t> positions = decoded_[i].positions;
    std::size_t& k = next_[i];
    if ((k > 0 && positions[k - 1] >= begin) || (k < positions.size() && positions[k] < begin))
      k = static_cast<std::size_t>(std::ranges::lower_bound(positions, begin) - positions.begin());
    for (; k < positions.size() && positions[k] < begin + out.size(); ++k) {
      out[positions[k] - begin] -= announced.weight * values[k];
      changed(positions[k] - begin);
    }
  }
  return is_dense;
}

std::span<const float> UpdateReader::read(std::size_t first, std::span<float> scratch) {
  const std::size_t count = scratch.size();
  if (!request_.is_difference()) return request_.residual.subspan(first, count);
  kernels::difference(request_.shared.subspan(first, count),
                      request_.position.subspan(first, count), scratch);
  subtract_announced(first, scratch, [](std::size_t) {});
  return scratch;
}

std::span<const float> UpdateReader::read_and_mark(std::size_t first, std::span<float> scratch,
                                                   float cut, std::span<std::uint64_t> marks,
                                                   bool is_new) {
  const std::size_t count = scratch.size();
  if (!request_.is_difference()) {
    const std::span here = request_.residual.subspan(first, count);
    if (!is_new) {
      kernels::mark(here, cut, marks);
    } else {
      kernels::feed_and_mark(here, request_.increment_of(first, count), request_.residual_decay,
                             cut, marks);
    }
    return here;
  }
  const float largest =
      kernels::difference_and_mark(request_.shared.subspan(first, count),
                                   request_.position.subspan(first, count), scratch, cut, marks);
  is_usable_ = is_usable_ && largest < request_.limit;
  const bool is_dense = subtract_announced(first, scratch, [&](std::size_t i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    const std::uint64_t is_marked = std::abs(scratch[i]) >= cut ? bit : 0;
    marks[i / 64] = (marks[i / 64] & ~bit) | is_marked;
  });
  if (is_dense) kernels::mark(scratch, cut, marks);
  return scratch;
}

void UpdateReader::preview(std::size_t first, std::span<float> out) {
  const std::size_t count = out.size();
  if (!request_.is_difference()) {
    const std::span increment = request_.increment_of(first, count);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = request_.residual[first + i] * request_.residual_decay +
               (increment.empty() ? 0.0F : increment[i]);
    return;
  }
  std::ranges::copy(request_.position.subspan(first, count), out.begin());
  if (request_.preview) request_.preview(first, out);
  kernels::difference(request_.shared.subspan(first, count), out, out);
  subtract_announced(first, out, [](std::size_t) {});
}

void UpdateReader::decode(std::size_t tile) {
  tile_ = tile;
  std::ranges::fill(next_, 0);
  for (std::size_t i = 0; i < decoded_.size(); ++i) {
    const PayloadView& payload = request_.announced[i].payload.view();
    if (!payload.is_dense()) {
      payload.entries_of(tile, decoded_[i]);
      continue;
    }
    decoded_[i].values.assign(tile_size(tile, payload.elements()), 0.0F);
    payload.add_tile(tile, 1.0F, decoded_[i].values, scratch_);
  }
}

void read_difference(const TakeOptions& request, Workers& workers, std::span<float> out) {
  run_tiles(out.size(), workers, [&](std::size_t first, std::size_t count) {
    UpdateReader(request).read(first, out.subspan(first, count));
  });
}

}  // namespace longhaul
