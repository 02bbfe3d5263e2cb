#include "longhaul/codec/accumulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tests/codec/codec_conformance.h"
#include "tests/codec/payload_samples.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::same_bits;

constexpr std::size_t kUpdateElements = 70'000;

struct Round {
  std::vector<ByteBuffer> payloads;
  std::vector<WeightedPayload> weighted;

  explicit Round(std::vector<ByteBuffer> bytes, std::size_t elements = kUpdateElements)
      : payloads(std::move(bytes)) {
    float weight = 0.5F;
    for (const ByteBuffer& payload : payloads)
      weighted.push_back(
          {.payload = CheckedPayload::check(payload, elements).value(), .weight = weight *= 1.25F});
  }
};

Round sparse_round(std::size_t elements = kUpdateElements) {
  using enum CodecKind;
  using enum ValueFormat;
  return Round(
      {encoded({.kind = kTopK, .values = k4Bit}, 0.01, elements, 1),
       encoded({.kind = kRandomK, .values = kBf16}, 0.01, elements, 2),
       encoded({.kind = kCocktail, .values = k8Bit}, 0.01, elements, 3),
       encoded({.kind = kThreshold, .values = kFp32, .threshold = 0.03F}, 1.0, elements, 4)},
      elements);
}

std::vector<float> sum_of(const Round& round, std::size_t threads = 1,
                          std::size_t elements = kUpdateElements) {
  Workers workers(threads);
  std::vector<float> sum(elements, 99.0F);  // what was there does not matter
  sum_payloads(round.weighted, sum, workers);
  return sum;
}

TEST(SumPayloads, EqualsAddingOneAfterTheOther) {
  for (const Round& round : {sparse_round(), Round(payload_of_each_kind(kUpdateElements))}) {
    std::vector<float> expected(kUpdateElements, 0.0F);
    for (const WeightedPayload& each : round.weighted) {
      const std::vector<float> decoded = decode(*each.payload.bytes(), kUpdateElements);
      for (std::size_t i = 0; i < kUpdateElements; ++i) expected[i] += each.weight * decoded[i];
    }
    EXPECT_TRUE(same_bits(sum_of(round), expected));
  }
}

TEST(SumPayloads, FollowsTheOrderGiven) {
  Round round(payload_of_each_kind(kUpdateElements));
  const std::vector<float> sum = sum_of(round);
  EXPECT_TRUE(same_bits(sum_of(round), sum));
  std::ranges::reverse(round.weighted);
  const std::vector<float> reversed = sum_of(round);
  EXPECT_FALSE(same_bits(reversed, sum));  // floats do not commute in threes: hence a fixed order
  for (std::size_t i = 0; i < kUpdateElements; ++i) ASSERT_NEAR(reversed[i], sum[i], 1e-5);
}

TEST(SumPayloads, OfNothingIsZero) {
  Workers workers(1);
  std::vector<float> sum(100, 1.0F);
  sum_payloads({}, sum, workers);
  EXPECT_TRUE(same_bits(sum, std::vector<float>(100, 0.0F)));
}

TEST(SumPayloads, RefusesPayloadsOfAnotherLength) {
  const Round round = sparse_round(1000);
  Workers workers(1);
  std::vector<float> sum(1001);
  EXPECT_THROW(sum_payloads(round.weighted, sum, workers), std::logic_error);
}

TEST(EncodeUnion, DecodesToTheBitsOfTheSum) {
  Workers workers(1);
  for (const std::size_t elements : {0U, 1U, 64U, 65U, 5000U, 70'000U}) {
    SCOPED_TRACE(elements);
    const Round round = sparse_round(elements);
    const std::vector<float> sum = sum_of(round, 1, elements);
    const CheckedPayload joined = encode_union(round.weighted, elements, workers);
    EXPECT_TRUE(same_bits(decode(*joined.bytes(), elements), sum));
  }
}

TEST(EncodeUnion, IsSparseWhereItsContributionsAre) {
  Workers workers(1);
  const Round round = sparse_round();
  const ByteBuffer payload = *encode_union(round.weighted, kUpdateElements, workers).bytes();
  EXPECT_EQ(PayloadView::parse(payload, kUpdateElements).value().header().kind,
            PayloadKind::kSparse);
  EXPECT_LT(payload.size(), kUpdateElements);
}

TEST(EncodeUnion, IsDenseWhereAContributionIsDense) {
  Workers workers(1);
  for (const CodecKind kind : {CodecKind::kDense, CodecKind::kLowRank}) {
    std::vector<ByteBuffer> payloads = sparse_round().payloads;
    payloads.push_back(encoded({.kind = kind}, 1.0, kUpdateElements, 5));
    const Round round(std::move(payloads));
    const std::vector<float> sum = sum_of(round);
    const ByteBuffer payload = *encode_union(round.weighted, kUpdateElements, workers).bytes();
    EXPECT_EQ(PayloadView::parse(payload, kUpdateElements).value().header().kind,
              PayloadKind::kDense);
    EXPECT_TRUE(same_bits(decode(payload, kUpdateElements), sum));
  }
}

TEST(EncodeUnion, IsDenseWhereThatIsSmaller) {
  Workers workers(1);
  const Round round({encoded({.kind = CodecKind::kRandomK}, 1.0, 5000, 1)}, 5000);
  const std::vector<float> sum = sum_of(round, 1, 5000);
  const ByteBuffer payload = *encode_union(round.weighted, 5000, workers).bytes();
  EXPECT_EQ(PayloadView::parse(payload, 5000).value().header().kind, PayloadKind::kDense);
  EXPECT_TRUE(same_bits(decode(payload, 5000), sum));
}

TEST(EncodeUnion, KeepsElementsThatCancelledOut) {
  Workers workers(1);
  const Round round(
      {encoded({.kind = CodecKind::kTopK, .values = ValueFormat::kFp32}, 0.01, 5000, 1),
       encoded({.kind = CodecKind::kTopK, .values = ValueFormat::kFp32}, 0.01, 5000, 1)},
      5000);
  const std::vector<WeightedPayload> opposed{
      {.payload = round.weighted[0].payload, .weight = 1.0F},
      {.payload = round.weighted[1].payload, .weight = -1.0F}};
  const ByteBuffer payload = *encode_union(opposed, 5000, workers).bytes();
  EXPECT_EQ(PayloadView::parse(payload, 5000).value().values(), 50U);
  EXPECT_TRUE(same_bits(decode(payload, 5000), std::vector<float>(5000, 0.0F)));
}

}  // namespace
}  // namespace longhaul
