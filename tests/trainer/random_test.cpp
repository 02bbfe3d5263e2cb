#include "trainer/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace longhaul::trainer {
namespace {

TEST(Random, DrawsTheSameBitsEverywhere) {
  Random random(1, Draws::kSplit);
  const std::vector<std::uint64_t> drawn{random.bits(), random.bits(), random.bits()};
  EXPECT_THAT(drawn, testing::ElementsAre(11460287206104075211U, 15369882955936935714U,
                                          4475357957619437670U));
}

TEST(Random, StreamsOfOneSeedDiffer) {
  EXPECT_NE(Random(1, Draws::kSplit).bits(), Random(1, Draws::kBatches).bits());
  EXPECT_NE(Random(1, Draws::kBatches, 1).bits(), Random(1, Draws::kBatches, 2).bits());
  EXPECT_NE(Random(1, Draws::kBatches, 2).bits(), Random(2, Draws::kBatches, 1).bits());
}

TEST(Random, BelowReachesEveryValueEquallyOften) {
  Random random(3, Draws::kSplit);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) ++seen[random.below(7)];
  for (const int times : seen) EXPECT_NEAR(times, 1000, 150);
}

TEST(Random, NormalHasMeanZeroAndDeviationOne) {
  Random random(4, Draws::kSplit);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const double drawn = random.normal();
    sum += drawn;
    squares += drawn * drawn;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
}

TEST(Random, GammaHasItsShapeAsMeanAndVariance) {
  for (const double shape : {0.1, 0.5, 1.0, 4.0}) {
    Random random(5, Draws::kSplit);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 20000; ++i) {
      const double drawn = random.gamma(shape);
      sum += drawn;
      squares += drawn * drawn;
    }
    const double mean = sum / 20000;
    EXPECT_NEAR(mean, shape, 0.1 * shape);
    EXPECT_NEAR(squares / 20000 - mean * mean, shape, 0.15 * shape);
  }
}

}  // namespace
}  // namespace longhaul::trainer
