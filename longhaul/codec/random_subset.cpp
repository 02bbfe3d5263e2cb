#include "longhaul/codec/random_subset.h"

#include <algorithm>
#include <cmath>

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

// One tile cut into `count` strata, with an element drawn from each. The strata begin at a random
// element and go around, or their unequal widths would favour the same elements in every round.
class Strata {
 public:
  Strata(const RandomSubset& subset, std::size_t tile, std::size_t tile_elements)
      : seed_(mixed(subset.seed ^ mixed(tile))),
        elements_(tile_elements),
        count_(subset.count_in(tile_elements)),
        rotation_(scaled(mixed(seed_), tile_elements)) {
    // By halving; std::ranges::partition_point on an iota would say it, but not to clang 14.
    for (std::size_t end = count_; first_around_ < end;) {
      const std::size_t middle = (first_around_ + end) / 2;
      if (element(middle) < elements_) {
        first_around_ = middle + 1;
      } else {
        end = middle;
      }
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }

  // Ranks are in ascending order of the elements: those that went around come first.
  [[nodiscard]] std::uint16_t position(std::size_t rank) const {
    const std::size_t around = count_ - first_around_;
    const bool went_around = rank < around;
    const std::size_t drawn = element(went_around ? first_around_ + rank : rank - around);
    return static_cast<std::uint16_t>(went_around ? drawn - elements_ : drawn);
  }

 private:
  // From the beginning of the tile on, at or beyond its end for those that go around. Ascends with
  // the stratum.
  [[nodiscard]] std::size_t element(std::size_t stratum) const {
    const std::size_t begin = stratum * elements_ / count_;
    const std::size_t width = (stratum + 1) * elements_ / count_ - begin;
    return rotation_ + begin + scaled(mixed(seed_ + 1 + stratum), width);
  }

  std::uint64_t seed_;
  std::size_t elements_;
  std::size_t count_;
  std::size_t rotation_;
  std::size_t first_around_ = 0;
};

}  // namespace

std::size_t RandomSubset::count_in(std::size_t tile_elements) const {
  return (std::size_t{per_tile} * tile_elements + kTileElements - 1) / kTileElements;
}

std::size_t RandomSubset::count_of(std::size_t elements) const {
  return elements / kTileElements * per_tile + count_in(elements % kTileElements);
}

void RandomSubset::draw(std::size_t tile, std::size_t tile_elements,
                        std::span<std::uint16_t> positions) const {
  const Strata strata(*this, tile, tile_elements);
  LONGHAUL_CHECK_EQ(positions.size(), strata.count());
  for (std::size_t rank = 0; rank < positions.size(); ++rank)
    positions[rank] = strata.position(rank);
}

void RandomSubset::locate(std::size_t tile, std::size_t tile_elements,
                          std::span<std::uint16_t> ranks) const {
  const Strata strata(*this, tile, tile_elements);
  for (std::uint16_t& rank : ranks) rank = strata.position(rank);
}

RandomSubset subset_of(double ratio, std::uint64_t seed) {
  LONGHAUL_CHECK(ratio > 0.0 && ratio <= 1.0);
  const double share = std::round(ratio * static_cast<double>(kTileElements));
  const double per_tile = std::clamp(share, 1.0, static_cast<double>(kTileElements));
  return {.seed = seed, .per_tile = static_cast<std::uint32_t>(per_tile)};
}

}  // namespace longhaul
