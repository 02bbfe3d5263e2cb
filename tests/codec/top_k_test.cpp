// Exact selection, against sorting everything.
#include "longhaul/codec/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "longhaul/codec/bf16.h"
#include "longhaul/codec/chunk_top_k.h"
#include "longhaul/codec/sparse_size.h"
#include "tests/codec/codec_conformance.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;
using testing_data::tied_update;

// Positions of the k largest magnitudes, zeros left out, equal ones by index; ascending.
std::vector<std::size_t> sorted_top(std::span<const float> values, std::size_t k) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return values[i] == 0.0F; });
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return std::abs(values[i]); });
  order.resize(std::min(k, order.size()));
  std::ranges::sort(order);
  return order;
}

std::vector<float> only(std::span<const float> values, std::span<const std::size_t> positions,
                        std::size_t offset = 0) {
  std::vector<float> kept(values.size(), 0.0F);
  for (const std::size_t i : positions) kept[offset + i] = values[offset + i];
  return kept;
}

// The whole update of top_k/fp32 equals the reference, bit for bit.
void expect_exact(const std::vector<float>& update, double keep_ratio, std::size_t threads = 1) {
  Workers workers(threads);
  TopK codec(ValueFormat::kFp32, workers);
  std::vector<float> residual = update;
  const ByteBuffer payload = codec.take({.residual = residual, .keep_ratio = keep_ratio});
  const Result<PayloadView> view = PayloadView::parse(payload, update.size());
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->header().kind, PayloadKind::kSparse);
  const std::vector<std::size_t> expected =
      sorted_top(update, kept_count(update.size(), keep_ratio));
  EXPECT_EQ(view->values(), expected.size());
  EXPECT_TRUE(same_bits(decode(payload, update.size()), only(update, expected)));
  std::vector<float> rest = update;
  for (const std::size_t i : expected) rest[i] = 0.0F;
  EXPECT_TRUE(same_bits(residual, rest));
}

TEST(TopK, KeepsTheLargestMagnitudes) {
  for (const std::size_t elements : {100U, 4095U, 4097U, 20'000U}) {
    for (const double keep_ratio : {0.0001, 0.01, 0.1, 0.5}) {
      SCOPED_TRACE(std::to_string(elements) + " at " + std::to_string(keep_ratio));
      expect_exact(normal_update(elements, elements), keep_ratio);
    }
  }
}

TEST(TopK, KeepsTheLargestMagnitudesAcrossTiles) { expect_exact(normal_update(140'000, 1), 0.01); }

TEST(TopK, ResolvesEqualMagnitudesByIndex) {
  for (const unsigned magnitudes : {1U, 2U, 3U, 10U, 200U}) {
    SCOPED_TRACE(magnitudes);
    expect_exact(tied_update(20'000, magnitudes + 1, magnitudes), 0.03);
  }
}

TEST(TopK, ResolvesEqualMagnitudesAcrossTilesByIndex) {
  expect_exact(std::vector<float>(140'000, -2.0F), 0.3);
  expect_exact(tied_update(140'000, 2, 1), 0.01);
}

TEST(TopK, SendsNoZeros) {
  std::vector<float> update(30'000, 0.0F);
  expect_exact(update, 0.01);
  for (const std::size_t position : {17U, 18U, 9000U, 29'999U}) update[position] = -1e-30F;
  expect_exact(update, 0.01);
  std::ranges::fill(update, -0.0F);
  expect_exact(update, 0.01);
}

TEST(TopK, OrdersDenormals) {
  expect_exact(testing_data::make_update(testing_data::Content::kDenormals, 20'000, 3), 0.01);
}

TEST(TopK, KeepsTheLargestHuge) {
  std::vector<float> update = testing_data::make_update(testing_data::Content::kHuge, 20'000, 3);
  update[5] = FLT_MAX;
  update[6] = -FLT_MAX;
  expect_exact(update, 0.01);
}

// Selection starts from a sample of 2048 lines of 16 elements. These updates are larger and mislead
// it.
constexpr std::size_t kUnsampled = 80'000;

// Normal values, `factor` times as large in the lines that the sample looks at. This repeats the
// choice of sampled_cut(): if that changes, the tests below still hold but no longer mislead it.
std::vector<float> update_with_sampled_lines(float factor) {
  std::vector<float> update = normal_update(kUnsampled, 8);
  const std::size_t lines = kUnsampled / 16;
  for (std::size_t i = 0; i < 2048; ++i) {
    const std::size_t line = i * lines / 2048 + (i * 0x9E3779B1U >> 7) % (lines / 2048);
    for (float& v : std::span(update).subspan(16 * line, 16)) v *= factor;
  }
  return update;
}

TEST(TopK, IsExactWhenTheSamplePromisesTooManyCandidates) {
  expect_exact(update_with_sampled_lines(1000.0F), 0.01);
}

TEST(TopK, IsExactWhenAllMassLiesWhereTheSampleDoesNotLook) {
  expect_exact(update_with_sampled_lines(0.001F), 0.01);
  expect_exact(update_with_sampled_lines(0.0F), 0.01);
}

TEST(TopK, IsExactWhenAllMassLiesInOneBlock) {
  for (const std::size_t begin : {0U, 33'333U, 79'000U}) {
    std::vector<float> update = normal_update(kUnsampled, begin);
    for (std::size_t i = begin; i < begin + 1000; ++i) update[i] *= 1e6F;
    expect_exact(update, 0.005);
  }
}

TEST(TopK, IsExactOnARamp) {
  std::vector<float> update(kUnsampled);
  std::iota(update.begin(), update.end(), 1.0F);
  expect_exact(update, 0.01);
  std::ranges::reverse(update);
  expect_exact(update, 0.01);
}

TEST(TopK, IsExactWhenTheSampleSeesOnlyZeros) {
  // One element in each line of 16 lies outside zero; few lines are sampled, so some of these miss
  // all of them.
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<float> update(kUnsampled, 0.0F);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 900; ++i) update[random() % kUnsampled] = 1.0F + static_cast<float>(i % 7);
    expect_exact(update, 0.01);
  }
}

TEST(TopK, IsExactWhenFarMoreThanKAreEqual) {
  std::vector<float> update(kUnsampled, 1.0F);
  for (std::size_t i = 0; i < update.size(); i += 1000) update[i] = 2.0F;
  expect_exact(update, 0.0005);  // fewer than the twos
  expect_exact(update, 0.01);    // all twos and the first ones
}

TEST(TopK, IsExactWithCandidatesConcentratedInTheLastTile) {
  std::vector<float> update(140'000, 1e-3F);
  for (std::size_t i = 131'072; i < update.size(); ++i)
    update[i] = 1.0F + static_cast<float>(i % 101);
  expect_exact(update, 0.02);
}

TEST(TopK, IsExactOnRandomMixturesOfScales) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<float> update = normal_update(40'000, seed);
    for (std::size_t begin = 0; begin < update.size(); begin += 500) {
      const float scale = std::exp2(static_cast<float>(random() % 60) - 30.0F);
      for (float& v : std::span(update).subspan(begin, 500)) v = std::round(v * 300.0F) * scale;
    }
    expect_exact(update, 0.02);
  }
}

TEST(TopK, SendsDenseWhereThatIsSmaller) {
  Workers workers(1);
  TopK codec(ValueFormat::k1Bit, workers);
  std::vector<float> update = normal_update(10'000, 1);
  const ByteBuffer payload = codec.take({.residual = update, .keep_ratio = 0.5});
  EXPECT_EQ(PayloadView::parse(payload, 10'000).value().header().kind, PayloadKind::kDense);
}

TEST(ChunkTopK, KeepsTheLargestOfEveryChunk) {
  Workers workers(1);
  for (const auto& update :
       {normal_update(70'001, 1), tied_update(70'001, 4, 2), tied_update(70'001, 2, 3),
        std::vector<float>(70'001, 0.0F), std::vector<float>(70'001, 1.0F)}) {
    std::vector<float> residual = update;
    const ByteBuffer payload =
        take_top_of_chunks({.residual = residual, .keep_ratio = 0.01}, ValueFormat::kFp32, workers);
    std::vector<float> expected(update.size(), 0.0F);
    for (std::size_t begin = 0; begin < update.size(); begin += kChunkElements) {
      const std::size_t here = std::min(kChunkElements, update.size() - begin);
      const std::span chunk = std::span(update).subspan(begin, here);
      for (const std::size_t i : sorted_top(chunk, kept_count(here, 0.01)))
        expected[begin + i] = chunk[i];
    }
    EXPECT_TRUE(same_bits(decode(payload, update.size()), expected));
  }
}

TEST(KeptCount, RoundsAndKeepsAtLeastOne) {
  EXPECT_EQ(kept_count(0, 0.5), 0U);
  EXPECT_EQ(kept_count(1, 0.001), 1U);
  EXPECT_EQ(kept_count(1000, 0.0004), 1U);
  EXPECT_EQ(kept_count(1000, 0.0016), 2U);
  EXPECT_EQ(kept_count(7, 1.0), 7U);
}

}  // namespace
}  // namespace longhaul
