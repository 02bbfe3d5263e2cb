// A subset of elements that everyone draws alike from a seed, so that no index travels.
// Each tile is cut into strata of equal width, from a random element on and around its end, and one
// element is drawn from each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace longhaul {

struct RandomSubset {
  static constexpr std::size_t kWireBytes = 12;  // the seed and per_tile

  std::uint64_t seed = 0;
  std::uint32_t per_tile =
      0;  // elements drawn from a full tile; a shorter one gives its share, rounded up

  [[nodiscard]] std::size_t count_in(std::size_t tile_elements) const;
  // Sum of count_in over all tiles of `elements` elements.
  [[nodiscard]] std::size_t count_of(std::size_t elements) const;
  // The ascending positions drawn from tile number `tile`; positions.size() ==
  // count_in(tile_elements).
  void draw(std::size_t tile, std::size_t tile_elements, std::span<std::uint16_t> positions) const;
  // Replaces ranks in that subset (0 for its first position, …) by the positions they stand for,
  // without drawing the rest.
  void locate(std::size_t tile, std::size_t tile_elements, std::span<std::uint16_t> ranks) const;
};

// The subset that holds about a share `ratio` of all elements, at least one of each tile.
RandomSubset subset_of(double ratio, std::uint64_t seed);

}  // namespace longhaul
