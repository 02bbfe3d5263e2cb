#include "longhaul/codec/random_subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "longhaul/codec/tile.h"

namespace longhaul {
namespace {

std::vector<std::uint16_t> drawn(const RandomSubset& subset, std::size_t tile,
                                 std::size_t tile_elements) {
  std::vector<std::uint16_t> positions(subset.count_in(tile_elements));
  subset.draw(tile, tile_elements, positions);
  return positions;
}

TEST(RandomSubset, DrawsAscendingDistinctPositionsInsideTheTile) {
  for (const double ratio : {0.00002, 0.001, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0}) {
    for (const std::size_t tile_elements :
         {std::size_t{1}, std::size_t{2}, std::size_t{513}, kTileElements}) {
      const auto positions = drawn(subset_of(ratio, 42), 3, tile_elements);
      ASSERT_FALSE(positions.empty());
      EXPECT_EQ(std::ranges::adjacent_find(positions, std::greater_equal<>()), positions.end());
      EXPECT_LT(positions.back(), tile_elements);
    }
  }
}

TEST(RandomSubset, RefusesRatiosThatAreNone) {
  EXPECT_THROW(subset_of(0.0, 1), std::logic_error);
  EXPECT_THROW(subset_of(1.5, 1), std::logic_error);
  EXPECT_THROW(subset_of(std::nan(""), 1), std::logic_error);
}

TEST(RandomSubset, DrawsEverythingAtRatioOne) {
  const auto positions = drawn(subset_of(1.0, 1), 0, kTileElements);
  ASSERT_EQ(positions.size(), kTileElements);
  for (std::size_t i = 0; i < positions.size(); ++i) ASSERT_EQ(positions[i], i);
}

TEST(RandomSubset, CountsItsElements) {
  for (const double ratio : {0.001, 0.01, 0.5}) {
    const RandomSubset subset = subset_of(ratio, 1);
    for (const std::size_t elements : {0U, 1U, 1000U, 65'536U, 65'537U, 300'000U}) {
      std::size_t total = 0;
      for (std::size_t tile = 0; tile < tile_count(elements); ++tile)
        total += subset.count_in(tile_size(tile, elements));
      EXPECT_EQ(subset.count_of(elements), total);
      const auto tiles = static_cast<double>(tile_count(elements));
      EXPECT_NEAR(static_cast<double>(total), ratio * static_cast<double>(elements), tiles + 1.0);
    }
  }
}

TEST(RandomSubset, IsTheSameForTheSameSeedAndTile) {
  EXPECT_EQ(drawn(subset_of(0.1, 5), 2, 10'000), drawn(subset_of(0.1, 5), 2, 10'000));
}

TEST(RandomSubset, DiffersBetweenSeedsAndTiles) {
  const auto one = drawn(subset_of(0.1, 5), 2, 10'000);
  EXPECT_NE(one, drawn(subset_of(0.1, 6), 2, 10'000));
  EXPECT_NE(one, drawn(subset_of(0.1, 5), 3, 10'000));
}

// How often each element was drawn over `rounds` seeds, as a share.
std::vector<double> inclusion(double ratio, std::size_t tile_elements, std::size_t rounds) {
  std::vector<double> share(tile_elements, 0.0);
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    for (const std::uint16_t i : drawn(subset_of(ratio, seed), 0, tile_elements))
      share[i] += 1.0 / static_cast<double>(rounds);
  }
  return share;
}

TEST(RandomSubset, IncludesEveryElementEquallyOften) {
  for (const double ratio : {1.0 / 64, 0.1, 0.25, 0.5, 0.7, 0.9}) {
    constexpr std::size_t kRounds = 2000;
    constexpr std::size_t kElements = 1024;
    const double share = static_cast<double>(subset_of(ratio, 0).count_in(kElements)) / kElements;
    const double deviation = std::sqrt(share * (1.0 - share) / kRounds);
    for (const double each : inclusion(ratio, kElements, kRounds)) {
      ASSERT_NEAR(each, share, 5.0 * deviation);
    }
  }
}

TEST(RandomSubset, LeavesNoElementOutForEver) {
  for (const double ratio : {0.3, 0.7, 0.9}) {
    for (const double each : inclusion(ratio, 512, 300)) ASSERT_GT(each, 0.1);
  }
}

TEST(RandomSubset, FindsSingleElementsWithoutDrawingTheOthers) {
  const RandomSubset subset = subset_of(0.01, 99);
  std::vector<std::uint16_t> drawn(subset.count_in(50000));
  subset.draw(3, 50000, drawn);
  std::vector<std::uint16_t> ranks{0, 1, 17, 400, static_cast<std::uint16_t>(drawn.size() - 1)};
  const std::vector<std::uint16_t> expected{drawn[0], drawn[1], drawn[17], drawn[400],
                                            drawn.back()};
  subset.locate(3, 50000, ranks);
  EXPECT_EQ(ranks, expected);
}

TEST(RandomSubset, WantsRoomForExactlyItsElements) {
  std::vector<std::uint16_t> positions(5);
  EXPECT_THROW(subset_of(0.5, 1).draw(0, 100, positions), std::logic_error);
}

}  // namespace
}  // namespace longhaul
