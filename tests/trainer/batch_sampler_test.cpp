#include "trainer/batch_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace longhaul::trainer {
namespace {

std::vector<std::uint32_t> draw(BatchSampler& sampler, int batches) {
  std::vector<std::uint32_t> drawn;
  for (int i = 0; i < batches; ++i) {
    const auto batch = sampler.next();
    drawn.insert(drawn.end(), batch.begin(), batch.end());
  }
  return drawn;
}

const std::vector<std::uint32_t> kShare{3, 14, 15, 92, 65, 35, 89, 79, 32, 38};

TEST(BatchSampler, UsesEverySampleOnceInEachPass) {
  BatchSampler sampler(kShare, 4, Random(1, Draws::kBatches));
  const auto drawn = draw(sampler, 5);  // two passes; the third batch reaches into the second
  for (const std::uint32_t sample : kShare) {
    EXPECT_EQ(std::count(drawn.begin(), drawn.begin() + 10, sample), 1);
    EXPECT_EQ(std::count(drawn.begin() + 10, drawn.end(), sample), 1);
  }
}

TEST(BatchSampler, ShufflesEachPassAnew) {
  BatchSampler sampler(kShare, 10, Random(1, Draws::kBatches));
  EXPECT_NE(draw(sampler, 1), draw(sampler, 1));
}

TEST(BatchSampler, EqualSeedsDrawEqualBatches) {
  BatchSampler a(kShare, 3, Random(1, Draws::kBatches, 2));
  BatchSampler b(kShare, 3, Random(1, Draws::kBatches, 2));
  BatchSampler c(kShare, 3, Random(1, Draws::kBatches, 3));
  const auto drawn = draw(a, 20);
  EXPECT_EQ(drawn, draw(b, 20));
  EXPECT_NE(drawn, draw(c, 20));
}

TEST(BatchSampler, ABatchMayBeLargerThanTheShare) {
  BatchSampler sampler({7, 8}, 5, Random(1, Draws::kBatches));
  const auto drawn = draw(sampler, 2);
  EXPECT_EQ(std::ranges::count(drawn, 7U), 5);
}

TEST(BatchSampler, GoesOnFromWhereAnotherOneWas) {
  BatchSampler whole(kShare, 3, Random(1, Draws::kBatches));
  BatchSampler resumed(kShare, 3, Random(1, Draws::kBatches));
  (void)draw(whole, 9);  // in the middle of a pass
  resumed.skip(9);
  EXPECT_EQ(draw(whole, 20), draw(resumed, 20));
}

}  // namespace
}  // namespace longhaul::trainer
