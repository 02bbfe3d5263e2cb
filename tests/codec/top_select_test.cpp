#include "longhaul/codec/top_select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/base/scratch.h"
#include "longhaul/codec/bf16.h"
#include "longhaul/codec/kernels.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::tied_update;

// Hints from useless to perfect; none may change a result.
constexpr std::uint32_t kHints[] = {
    0, 1, 0x00800000U, 0x3C23D70AU, 0x3F800000U, kInfinityBits - 1, 0xFFFFFFFFU};

Scratch<std::uint16_t> sorted_positions(std::span<const float> values, std::size_t k) {
  Scratch<std::uint16_t> order;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0.0F) order.push_back(static_cast<std::uint16_t>(i));
  }
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::uint16_t i) { return std::abs(values[i]); });
  order.resize(std::min(k, order.size()));
  std::ranges::sort(order);
  return order;
}

std::vector<std::vector<float>> inputs() {
  return {normal_update(1000, 1),
          tied_update(1000, 2, 2),
          tied_update(1000, 5, 3),
          std::vector<float>(500, 0.0F),
          std::vector<float>(500, -3.0F),
          std::vector<float>(500, FLT_MAX),
          std::vector<float>(70, FLT_TRUE_MIN),
          testing_data::make_update(testing_data::Content::kDenormals, 800, 4),
          testing_data::make_update(testing_data::Content::kMostlyZeros, 3000, 5),
          testing_data::make_update(testing_data::Content::kSingleSpike, 65, 6),
          {1.0F}};
}

TEST(SelectTop, EqualsSortingForEveryHint) {
  for (const std::vector<float>& values : inputs()) {
    for (const std::size_t k :
         {std::size_t{1}, values.size() / 10 + 1, values.size() / 2 + 1, values.size()}) {
      const Scratch<std::uint16_t> expected = sorted_positions(values, k);
      for (const std::uint32_t hint : kHints) {
        Scratch<std::uint16_t> positions;
        (void)select_top(values, k, hint, positions);
        ASSERT_EQ(positions, expected) << "k " << k << ", hint " << hint;
      }
    }
  }
}

TEST(SelectTop, AppendsToWhatIsThere) {
  Scratch<std::uint16_t> positions{7};
  (void)select_top(std::vector{1.0F, -5.0F, 2.0F}, 2, 0, positions);
  EXPECT_EQ(positions, (Scratch<std::uint16_t>{7, 1, 2}));
}

TEST(SelectTop, TakesAtMostATile) {
  Scratch<std::uint16_t> positions;
  EXPECT_THROW((void)select_top(std::vector<float>(65'537, 1.0F), 1, 0, positions),
               std::logic_error);
}

TEST(FindCut, LeavesKToKPlusSlackCandidates) {
  const std::vector<float> values = normal_update(5000, 1);
  const auto count = [&](float threshold) { return kernels::count_at_least(values, threshold); };
  for (const std::size_t k : {1U, 10U, 100U, 2500U, 5000U}) {
    for (const std::uint32_t hint : kHints) {
      const std::uint32_t cut = find_cut(count, k, 3, hint);
      const std::size_t candidates = count(std::bit_cast<float>(cut));
      EXPECT_GE(candidates, k);
      EXPECT_LE(candidates, k + 3);
    }
  }
}

TEST(FindCut, GivesTheLargestCutWithKWhereManyAreEqual) {
  const std::vector<float> values(300, 0.7F);
  const auto count = [&](float threshold) { return kernels::count_at_least(values, threshold); };
  for (const std::uint32_t hint : kHints) {
    const std::uint32_t cut = find_cut(count, 10, 3, hint);
    EXPECT_EQ(cut, magnitude_bits(0.7F));
    EXPECT_EQ(count(std::bit_cast<float>(cut)), 300U);
  }
}

TEST(FindCut, GivesAllThatIsNotZeroWhereFewerThanKAre) {
  std::vector<float> values(300, 0.0F);
  values[7] = -FLT_TRUE_MIN;
  values[8] = FLT_MAX;
  const auto count = [&](float threshold) { return kernels::count_at_least(values, threshold); };
  for (const std::uint32_t hint : kHints) {
    const std::uint32_t cut = find_cut(count, 10, 3, hint);
    EXPECT_EQ(cut, 1U);
    EXPECT_EQ(count(std::bit_cast<float>(cut)), 2U);
  }
}

TEST(FindCut, CountsSeldom) {
  const std::vector<float> values = normal_update(5000, 1);
  for (const std::uint32_t hint : kHints) {
    int passes = 0;
    (void)find_cut(
        [&](float threshold) {
          ++passes;
          return kernels::count_at_least(values, threshold);
        },
        100, 25, hint);
    EXPECT_LE(passes, 40);
  }
}

TEST(KthLargest, EqualsSorting) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {1U, 2U, 511U, 513U, 5000U}) {
    for (const std::uint64_t range :
         {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{3000}, std::uint64_t{1} << 32}) {
      std::vector<std::uint32_t> bits(size);
      for (std::uint32_t& b : bits) b = static_cast<std::uint32_t>(random() % range);
      std::vector<std::uint32_t> sorted = bits;
      std::ranges::sort(sorted, std::greater<>());
      for (const std::size_t k : {std::size_t{1}, size / 3 + 1, size}) {
        std::vector<std::uint32_t> scratch = bits;
        EXPECT_EQ(kth_largest(scratch, k), sorted[k - 1]) << size << ' ' << range << ' ' << k;
      }
    }
  }
}

TEST(KthLargest, NeedsAKInsideItsRange) {
  std::vector<std::uint32_t> bits{1, 2, 3};
  EXPECT_THROW((void)kth_largest(bits, 0), std::logic_error);
  EXPECT_THROW((void)kth_largest(bits, 4), std::logic_error);
}

TEST(Cut, KeepsAllAboveItAndTheFirstEqualOnes) {
  std::vector<std::uint32_t> candidates{1, 2, 2, 2, 5, 0};
  Cut cut = exact_cut(candidates, 3);
  EXPECT_EQ(cut.bits, 2U);
  EXPECT_EQ(cut.ties, 2U);
  std::vector<bool> kept;
  for (const std::uint32_t each : {1U, 2U, 2U, 2U, 5U, 0U}) kept.push_back(cut.keeps(each));
  EXPECT_EQ(kept, (std::vector<bool>{false, true, true, false, true, false}));
}

TEST(AppendMarked, AppendsThePositionsOfSetMarksInOrder) {
  const std::vector<std::uint64_t> marks{0x8000000000000001U, 0, 0x10};
  Scratch<std::uint16_t> positions{9};
  EXPECT_EQ(append_marked(marks, positions), 3U);
  EXPECT_EQ(positions, (Scratch<std::uint16_t>{9, 0, 63, 132}));
}

TEST(AppendMarked, AppendsAWholeTile) {
  Scratch<std::uint16_t> positions;
  EXPECT_EQ(append_marked(std::vector<std::uint64_t>(1024, ~std::uint64_t{0}), positions), 65'536U);
  for (std::size_t i = 0; i < positions.size(); ++i) ASSERT_EQ(positions[i], i);
}

}  // namespace
}  // namespace longhaul
