// Low rank on a basis that all replicas share.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "longhaul/codec/low_rank.h"
#include "longhaul/codec/payload.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

constexpr std::size_t kSharedRows = 40;
constexpr std::size_t kSharedColumns = 25;
constexpr std::size_t kSharedBias = 7;
constexpr std::size_t kSharedElements = kSharedRows * kSharedColumns + kSharedBias;

LayerTable matrix_and_bias() {
  return {{.name = "w", .count = kSharedRows * kSharedColumns, .shape = {40, 25}},
          {.name = "b", .offset = kSharedRows * kSharedColumns, .count = kSharedBias}};
}

std::vector<float> decoded(ByteView payload) {
  std::vector<float> values(kSharedElements);
  add(PayloadView::parse(payload, kSharedElements).value(), 1.0F, values);
  return values;
}

double magnitude(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += std::abs(static_cast<double>(v));
  return sum;
}

struct Summed {
  std::optional<ByteBuffer> payload;
  std::vector<double> expected;
};

Summed summed(const ByteBuffer& a, float share_of_a, const ByteBuffer& b, float share_of_b) {
  const std::vector<WeightedPayload> both{
      {.payload = CheckedPayload::check(a, kSharedElements).value(), .weight = share_of_a},
      {.payload = CheckedPayload::check(b, kSharedElements).value(), .weight = share_of_b}};
  Summed sum{.payload = sum_of_factors(both), .expected = std::vector<double>(kSharedElements)};
  const std::vector<float> of_a = decoded(a);
  const std::vector<float> of_b = decoded(b);
  for (std::size_t i = 0; i < kSharedElements; ++i)
    sum.expected[i] = static_cast<double>(share_of_a) * static_cast<double>(of_a[i]) +
                      static_cast<double>(share_of_b) * static_cast<double>(of_b[i]);
  return sum;
}

TEST(SharedLowRank, TheMeanOfTwoIsAsSmallAsOneAndWhatTheySum) {
  LowRank one({.kind = CodecKind::kSharedLowRank, .rank = 3}, matrix_and_bias());
  LowRank other({.kind = CodecKind::kSharedLowRank, .rank = 3}, matrix_and_bias());
  for (std::uint64_t round = 0; round < 5; ++round) {  // both factors have their turn
    std::vector<float> a = testing_data::normal_update(kSharedElements, 2 * round);
    std::vector<float> b = testing_data::normal_update(kSharedElements, 2 * round + 1);
    const ByteBuffer of_one = one.take({.residual = a});
    const ByteBuffer of_other = other.take({.residual = b});
    const Summed sum = summed(of_one, 0.25F, of_other, 0.75F);
    ASSERT_TRUE(sum.payload);
    EXPECT_EQ(sum.payload->size(), of_one.size());
    const std::vector<float> mean = decoded(*sum.payload);
    for (std::size_t i = 0; i < kSharedElements; ++i)
      ASSERT_NEAR(static_cast<double>(mean[i]), sum.expected[i], 1e-5);
    one.learn(mean);
    other.learn(mean);
    ASSERT_TRUE(std::ranges::equal(one.state(), other.state()));
  }
}

TEST(SharedLowRank, HasNoSumOnDifferentBases) {
  LowRank one({.kind = CodecKind::kSharedLowRank, .rank = 3}, matrix_and_bias());
  LowRank other({.kind = CodecKind::kSharedLowRank, .rank = 3}, matrix_and_bias());
  std::vector<float> a = testing_data::normal_update(kSharedElements, 1);
  std::vector<float> b = testing_data::normal_update(kSharedElements, 2);
  other.learn(b);
  EXPECT_FALSE(summed(one.take({.residual = a}), 0.5F, other.take({.residual = b}), 0.5F).payload);
  EXPECT_FALSE(sum_of_factors({}));
}

// What is of the basis' rank is told after a few rounds; a codec that does not learn never tells
// it.
TEST(SharedLowRank, LearnsWhatTheMeansSpan) {
  std::vector<float> update(kSharedElements, 0.0F);
  const std::vector<float> left = testing_data::normal_update(kSharedRows, 3);
  const std::vector<float> right = testing_data::normal_update(kSharedColumns, 4);
  for (std::size_t i = 0; i < kSharedRows * kSharedColumns; ++i)
    update[i] = left[i / kSharedColumns] * right[i % kSharedColumns];
  const auto rest_after = [&](bool learns) {
    LowRank codec({.kind = CodecKind::kSharedLowRank, .rank = 2}, matrix_and_bias());
    std::vector<float> residual = update;
    for (int round = 0; round < 6; ++round) {
      const ByteBuffer payload = codec.take({.residual = residual});
      if (learns) codec.learn(decoded(payload));
    }
    return magnitude(residual) / magnitude(update);
  };
  EXPECT_LT(rest_after(true), 1e-4);
  EXPECT_GT(rest_after(false), 0.3);
}

TEST(SharedLowRank, LearnsNothingFromAnEmptyRound) {
  LowRank codec({.kind = CodecKind::kSharedLowRank, .rank = 2}, matrix_and_bias());
  const std::vector<float> before(codec.state().begin(), codec.state().end());
  codec.learn(std::vector<float>(kSharedElements));
  EXPECT_TRUE(std::ranges::equal(codec.state(), before));
}

}  // namespace
}  // namespace longhaul
