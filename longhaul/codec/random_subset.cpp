#include "longhaul/codec/random_subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "longhaul/base/check.h"
#include "longhaul/codec/tile.h"

namespace longhaul {
namespace {

// The finaliser of splitmix64: every bit of the result depends on every bit of the input.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// A number below `limit` from the upper half of `bits`.
std::size_t scaled(std::uint64_t bits, std::size_t limit) { return ((bits >> 32) * limit) >> 32; }

}  // namespace

std::size_t RandomSubset::count_in(std::size_t tile_elements) const {
  return (std::size_t{per_tile} * tile_elements + kTileElements - 1) / kTileElements;
}

std::size_t RandomSubset::count_of(std::size_t elements) const {
  return elements / kTileElements * per_tile + count_in(elements % kTileElements);
}

void RandomSubset::draw(std::size_t tile, std::size_t tile_elements,
                        std::span<std::uint16_t> positions) const {
  LONGHAUL_CHECK_EQ(positions.size(), count_in(tile_elements));
  std::iota(positions.begin(), positions.end(), std::uint16_t{0});
  locate(tile, tile_elements, positions);
}

// The strata begin at a random element and go around, or their unequal widths would favour the same
// elements in every round.
void RandomSubset::locate(std::size_t tile, std::size_t tile_elements,
                          std::span<std::uint16_t> ranks) const {
  const std::uint64_t tile_seed = mixed(seed ^ mixed(tile));
  const std::size_t count = count_in(tile_elements);
  const std::size_t rotation = scaled(mixed(tile_seed), tile_elements);
  // The element drawn from a stratum, counted from the beginning of the tile. Those that go around
  // lie at or beyond its end. Ascends with the stratum.
  const auto element = [&](std::size_t stratum) {
    const std::size_t begin = stratum * tile_elements / count;
    const std::size_t width = (stratum + 1) * tile_elements / count - begin;
    return rotation + begin + scaled(mixed(tile_seed + 1 + stratum), width);
  };
  // By halving; std::ranges::partition_point on an iota would say it, but not to clang 14.
  std::size_t first_around = 0;
  for (std::size_t end = count; first_around < end;) {
    const std::size_t middle = (first_around + end) / 2;
    if (element(middle) < tile_elements) {
      first_around = middle + 1;
    } else {
      end = middle;
    }
  }
  // Ranks are in ascending order of the elements: those that went around come first.
  const std::size_t around = count - first_around;
  for (std::uint16_t& rank : ranks) {
    const bool went_around = rank < around;
    const std::size_t drawn = element(went_around ? first_around + rank : rank - around);
    rank = static_cast<std::uint16_t>(went_around ? drawn - tile_elements : drawn);
  }
}

RandomSubset subset_of(double ratio, std::uint64_t seed) {
  LONGHAUL_CHECK(ratio > 0.0 && ratio <= 1.0);
  const double share = std::round(ratio * static_cast<double>(kTileElements));
  const double per_tile = std::clamp(share, 1.0, static_cast<double>(kTileElements));
  return {.seed = seed, .per_tile = static_cast<std::uint32_t>(per_tile)};
}

}  // namespace longhaul
