#include "longhaul/exchange/exchange.h"

#include <algorithm>

namespace longhaul {

bool Mean::is_sparse() const {
  return !values &&
         std::ranges::none_of(terms, [](const MeanTerm& term) { return term.payload.is_dense(); });
}

std::span<const float> Mean::tile(std::size_t tile, std::vector<float>& sum,
                                  TileEntries& scratch) const {
  const std::size_t count = tile_size(tile, elements());
  if (values) return std::span(*values).subspan(tile_begin(tile), count);
  sum.assign(count, 0.0F);
  for (const MeanTerm& term : terms) term.payload.add_tile(tile, term.weight, sum, scratch);
  return sum;
}

}  // namespace longhaul
