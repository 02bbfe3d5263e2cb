// Means that are compressed again: nothing is lost, and all members are sent the same few bytes.
#include "longhaul/round/mean_compressor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "longhaul/codec/kernels.h"
#include "longhaul/codec/payload.h"
#include "tests/codec/checked.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::dense;
using testing_data::values_of;

constexpr std::size_t kMeanElements = 5000;

TEST(MeanCompressor, SendsInTheEndAllThatTheMeansHeld) {
  Workers alone;
  MeanCompressor compressor(
      {.codec = parse_codec("top_k/bf16").value(), .elements = kMeanElements, .keep_ratio = 0.05},
      alone);
  std::vector<double> held(kMeanElements);
  std::vector<double> sent(kMeanElements);
  double scale = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::vector<float> whole = testing_data::normal_update(kMeanElements, round);
    RoundMean mean{.payload = dense(whole), .down = {{}, {}}};
    for (std::size_t j = 0; j < kMeanElements; ++j) held[j] += static_cast<double>(whole[j]);
    compressor.compress(mean, round);
    const std::vector<float> left = values_of(mean.payload, kMeanElements);
    for (std::size_t j = 0; j < kMeanElements; ++j) sent[j] += static_cast<double>(left[j]);
    for (const DownLoad& down : mean.down) {
      EXPECT_EQ(down.way, WayDown::kTwoWay);
      EXPECT_EQ(down.bytes, mean.payload.size());
    }
    EXPECT_LT(mean.payload.size(), kMeanElements);
  }
  double off = 0;
  for (std::size_t j = 0; j < kMeanElements; ++j) {
    off += std::abs(held[j] - sent[j] - static_cast<double>(compressor.residual()[j]));
    scale += std::abs(held[j]);
  }
  EXPECT_LT(off / scale, 1e-5);
}

TEST(MeanCompressor, OutlivesUpdatesThatAddUpBeyondAFloat) {
  Workers alone;
  MeanCompressor compressor(
      {.codec = parse_codec("top_k/bf16").value(), .elements = kMeanElements, .keep_ratio = 0.05},
      alone);
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<float> values(kMeanElements, round < 15 ? 7.5e37F : 1.0F);
    if (round % 2 == 0 && round < 14) std::ranges::fill(values, 0.9e37F);
    RoundMean mean{.payload = dense(values)};
    compressor.compress(mean, round);
    EXPECT_TRUE(check_finite(values_of(mean.payload, kMeanElements)).ok());
    EXPECT_TRUE(check_finite(compressor.residual()).ok());
  }
  EXPECT_LT(compressor.residual()[kMeanElements - 1], 100.0F) << "what was absurd is gone";
}

// Near the end of what a float can hold, where rounding to bf16 makes factors larger.
TEST(MeanCompressor, OutlivesLowRankFactorsThatAreRoundedUp) {
  constexpr std::size_t kRows = 21;
  constexpr std::size_t kColumns = 40;
  Workers workers(1);
  MeanCompressor compressor(
      {.codec = parse_codec("low_rank/bf16").value(),
       .layers = {{.name = "w", .count = kRows * kColumns, .shape = {kRows, kColumns}}},
       .elements = kRows * kColumns},
      workers);
  std::vector<float> values(kRows * kColumns);
  const float large = 0.999F * 0x1p125F / std::sqrt(20.0F);
  for (std::size_t i = 0; i < 20; ++i) values[i * kColumns] = large;
  values[20 * kColumns + 1] = large / 4;
  RoundMean mean{.payload = dense(values)};
  compressor.compress(mean, 0);
  EXPECT_TRUE(check_finite(values_of(mean.payload, kRows * kColumns)).ok());
  EXPECT_TRUE(check_finite(compressor.residual()).ok());
}

TEST(MeanCompressor, RefusesASnapshotWithAResidualThatIsNotFinite) {
  Workers workers(1);
  MeanCompressor compressor({.codec = parse_codec("dense/2bit").value(), .elements = 4}, workers);
  State state;
  compressor.save(state);
  ASSERT_TRUE(compressor.load(state).ok());
  state.tensors["mean_residual"][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(compressor.load(state).error().code, ErrorCode::kNotFinite);
}

TEST(MeanCompressor, LearnsTheBasisOfItsMeans) {
  Workers alone;
  MeanCompressor compressor({.codec = parse_codec("shared_low_rank").value(),
                             .layers = {{.name = "m", .count = kMeanElements, .shape = {50, 100}}},
                             .elements = kMeanElements},
                            alone);
  double missing = 0;
  for (std::uint64_t round = 0; round < 8; ++round) {  // of rank one
    std::vector<float> whole(kMeanElements);
    for (std::size_t j = 0; j < kMeanElements; ++j)
      whole[j] = std::sin(static_cast<float>(j / 100)) * std::cos(static_cast<float>(j % 100));
    RoundMean mean{.payload = dense(whole)};
    compressor.compress(mean, round);
    missing = static_cast<double>(kernels::sum_of_magnitudes(compressor.residual())) /
              static_cast<double>(kernels::sum_of_magnitudes(whole));
  }
  EXPECT_LT(missing, 0.01);
}

// It is handed on without another look: so it must pass one.
TEST(MeanCompressor, ThePayloadIsWellFormed) {
  Workers alone;
  MeanCompressor compressor({.codec = parse_codec("chunk_top_k/2bit").value(),
                             .elements = kMeanElements,
                             .keep_ratio = 1.0 / 64},
                            alone);
  RoundMean mean{.payload = dense(testing_data::normal_update(kMeanElements, 1))};
  compressor.compress(mean, 0);
  EXPECT_TRUE(PayloadView::parse(*mean.payload.bytes(), kMeanElements).ok());
}

TEST(MeanCompressor, HoldsNothingBackInADenseStep) {
  Workers alone;
  MeanCompressor compressor({.codec = parse_codec("top_k/bf16").value(),
                             .elements = kMeanElements,
                             .keep_ratio = 0.05,
                             .dense_step = 7},
                            alone);
  std::vector<double> rest(kMeanElements);
  for (const std::uint64_t step : {3U, 7U}) {
    const std::vector<float> whole = testing_data::normal_update(kMeanElements, step);
    RoundMean mean{.payload = dense(whole)};
    compressor.compress(mean, step);
    const std::vector<float> sent = values_of(mean.payload, kMeanElements);
    for (std::size_t j = 0; j < kMeanElements; ++j)
      rest[j] += static_cast<double>(whole[j]) - static_cast<double>(sent[j]);
  }
  for (std::size_t j = 0; j < kMeanElements; ++j) {
    ASSERT_EQ(compressor.residual()[j], 0.0F);
    ASSERT_NEAR(rest[j], 0, 1e-6);
  }
}

}  // namespace
}  // namespace longhaul
