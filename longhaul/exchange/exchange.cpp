#include "longhaul/exchange/exchange.h"

#include <algorithm>

namespace longhaul {

namespace {

// Going through elements one by one costs several times as much as going through all in order.
constexpr std::size_t kSparse = 8;

}  // namespace

bool Mean::is_sparse() const {
  if (values || !in_place.empty()) return false;
  std::size_t named = 0;
  for (const WeightedPayload& term : terms) {
    if (term.payload.view().is_dense()) return false;
    named += term.payload.view().values();
  }
  return kSparse * named <= elements();
}

std::vector<float> Mean::to_vector() const {
  if (values) return *values;
  std::vector<float> all(elements());
  std::vector<float> sum;
  TileEntries scratch;
  for (std::size_t i = 0; i < tile_count(all.size()); ++i)
    std::ranges::copy(tile(i, sum, scratch), std::span(all).subspan(tile_begin(i)).begin());
  return all;
}

std::span<const float> Mean::tile(std::size_t tile, std::vector<float>& sum,
                                  TileEntries& scratch) const {
  const std::size_t count = tile_size(tile, elements());
  if (!in_place.empty()) return in_place.subspan(tile_begin(tile), count);
  if (values) return std::span(*values).subspan(tile_begin(tile), count);
  sum.assign(count, 0.0F);
  for (const WeightedPayload& term : terms)
    term.payload.view().add_tile(tile, term.weight, sum, scratch);
  return sum;
}

}  // namespace longhaul
