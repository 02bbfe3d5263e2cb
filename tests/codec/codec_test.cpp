#include "longhaul/codec/codec.h"

#include <gtest/gtest.h>

#include <set>

#include <stdexcept>

#include "tests/codec/codec_cases.h"
#include "tests/codec/codec_conformance.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

TEST(ParseCodec, GivesTheUsualFormatWhereNoneIsNamed) {
  const auto name_after_parsing = [](std::string_view name) {
    return parse_codec(name).value().name();
  };
  EXPECT_EQ(name_after_parsing("dense"), "dense/fp32");
  EXPECT_EQ(name_after_parsing("top_k"), "top_k/bf16");
  EXPECT_EQ(name_after_parsing("chunk_top_k"), "chunk_top_k/2bit");
  EXPECT_EQ(name_after_parsing("threshold"), "threshold/bf16");
  EXPECT_EQ(name_after_parsing("random_k"), "random_k/bf16");
  EXPECT_EQ(name_after_parsing("cocktail"), "cocktail/4bit");
  EXPECT_EQ(name_after_parsing("sign"), "sign");
  EXPECT_EQ(name_after_parsing("low_rank"), "low_rank/fp32");
  EXPECT_EQ(name_after_parsing("shared_low_rank/bf16"), "shared_low_rank/bf16");
}

TEST(ParseCodec, SaysWhatItExpectedAndWhatItGot) {
  for (const std::string_view name : {"", "top", "top_k ", "Top_k", "/bf16"}) {
    const Result<CodecOptions> parsed = parse_codec(name);
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find("chunk_top_k"), std::string::npos);
    EXPECT_NE(parsed.error().message.find('"' + std::string(name) + '"'), std::string::npos);
  }
}

TEST(ParseCodec, RefusesFormatsThatTheCodecDoesNotHave) {
  for (const std::string_view name :
       {"top_k/", "top_k/fp64", "sign/fp32", "low_rank/4bit", "dense/bf16/x"}) {
    EXPECT_FALSE(parse_codec(name).ok()) << name;
  }
}

TEST(MakeCodec, GivesOneBitForSignWhateverTheFormat) {
  Workers workers(1);
  std::vector<float> update = testing_data::normal_update(1000, 1);
  const auto codec = make_codec({.kind = CodecKind::kSign}, {}, workers);
  const ByteBuffer payload = codec->take({.residual = update});
  EXPECT_EQ(PayloadView::parse(payload, 1000).value().header().format, ValueFormat::k1Bit);
}

TEST(LowRank, SendsAMatrixOfItsRankAlmostWhole) {
  Workers workers(1);
  constexpr std::size_t kRows = 40;
  constexpr std::size_t kColumns = 70;
  std::vector<float> update(kRows * kColumns);
  const std::vector<float> left = testing_data::normal_update(2 * kRows, 1);
  const std::vector<float> right = testing_data::normal_update(2 * kColumns, 2);
  for (std::size_t i = 0; i < update.size(); ++i) {
    const std::size_t row = i / kColumns;
    const std::size_t column = i % kColumns;
    update[i] = left[row] * right[column] + left[kRows + row] * right[kColumns + column];
  }
  const LayerTable layers{
      {.name = "w", .offset = 0, .count = update.size(), .shape = {kRows, kColumns}}};
  for (const float scale : {1.0F, 1e-12F, 1e12F}) {
    SCOPED_TRACE(scale);
    const auto codec = make_codec({.kind = CodecKind::kLowRank, .rank = 2}, layers, workers);
    for (int round = 0; round < 3; ++round) {  // the second starts from what the first found
      std::vector<float> residual = update;
      for (float& v : residual) v *= scale;
      const float before = kernels::sum_of_magnitudes(residual);
      (void)codec->take({.residual = residual});
      EXPECT_LT(kernels::sum_of_magnitudes(residual), 1e-5F * before);
    }
  }
}

TEST(LowRank, RegainsItsRankAfterAnUpdateOfLowerRank) {
  Workers workers(1);
  constexpr std::int64_t kSide = 30;
  const LayerTable layers{{.name = "w", .offset = 0, .count = 900, .shape = {kSide, kSide}}};
  const auto codec = make_codec({.kind = CodecKind::kLowRank, .rank = 2}, layers, workers);
  std::vector<float> rank_one(900, 0.0F);
  rank_one[17] = 1.0F;
  std::vector<float> rank_two = rank_one;
  rank_two[500] = -2.0F;
  for (const std::vector<float>& update : {rank_one, rank_two}) {
    std::vector<float> residual = update;
    (void)codec->take({.residual = residual});
    EXPECT_LT(kernels::sum_of_magnitudes(residual), 1e-5F);
  }
}

TEST(LowRank, KeepsWhatIsTooLargeForItsFactors) {
  Workers workers(1);
  const LayerTable layers{{.name = "w", .offset = 0, .count = 900, .shape = {30, 30}}};
  const auto codec = make_codec({.kind = CodecKind::kLowRank, .rank = 4}, layers, workers);
  for (const float spike : {1e-20F, FLT_MAX, -FLT_MAX, 1e38F, 1.0F}) {
    std::vector<float> residual(900, 0.0F);
    residual[0] = 1.0F;
    residual[31] = spike;
    EXPECT_TRUE(conserves(run_take(*codec, residual, {}, 1.0F, 1.0)));
  }
}

TEST(LowRank, RepeatsItselfFromACopyOfItsState) {
  Workers workers(1);
  const CodecCase low_rank{.spec = {.kind = CodecKind::kLowRank, .rank = 3}};
  constexpr std::size_t kElements = 40'000;
  const auto first = make_case(low_rank, kElements, workers);
  const auto second = make_case(low_rank, kElements, workers);
  std::vector<float> update = testing_data::normal_update(kElements, 1);
  std::vector<float> scratch = update;
  (void)first->take({.residual = scratch});
  ASSERT_EQ(first->state().size(), second->state().size());
  std::ranges::copy(first->state(), second->state().begin());
  scratch = update;
  const ByteBuffer payload = first->take({.residual = scratch});
  EXPECT_TRUE(second->take({.residual = update}) == payload);
}

TEST(LowRank, RefusesAnUpdateThatIsNotLaidOutLikeItsLayers) {
  Workers workers(1);
  std::vector<float> update(100, 1.0F);
  const auto codec = make_case({.spec = {.kind = CodecKind::kLowRank}}, 5000, workers);
  EXPECT_THROW((void)codec->take({.residual = update}), std::logic_error);
}

TEST(RandomK, SendsTheSameElementsForTheSameSeedAndOthersForAnother) {
  Workers workers(1);
  const auto codec = make_codec({.kind = CodecKind::kRandomK}, {}, workers);
  const auto sent = [&](std::uint64_t update_seed, std::uint64_t seed) {
    std::vector<float> residual = testing_data::normal_update(20'000, update_seed);
    (void)codec->take({.residual = residual, .keep_ratio = 0.05, .seed = seed});
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < residual.size(); ++i) {
      if (residual[i] == 0.0F) positions.push_back(i);
    }
    return positions;
  };
  EXPECT_NEAR(static_cast<double>(sent(1, 9).size()), 1000.0, 1.0);
  EXPECT_EQ(sent(1, 9), sent(2, 9));
  EXPECT_NE(sent(1, 9), sent(1, 10));
}

TEST(Threshold, SendsExactlyWhatReachesTheThreshold) {
  Workers workers(1);
  const auto codec = make_codec({.kind = CodecKind::kThreshold, .threshold = 0.5F}, {}, workers);
  std::vector<float> residual(70'000, 0.25F);
  residual[0] = 0.5F;
  residual[1] = -0.5F;
  residual[2] = std::nextafter(0.5F, 0.0F);
  residual[69'999] = -7.0F;
  const ByteBuffer payload = codec->take({.residual = residual});
  EXPECT_EQ(PayloadView::parse(payload, 70'000).value().values(), 3U);
  EXPECT_EQ(residual[0], 0.0F);
  EXPECT_EQ(residual[1], 0.0F);
  EXPECT_EQ(residual[2], std::nextafter(0.5F, 0.0F));
  EXPECT_EQ(residual[69'999], 0.0F);
}

TEST(TakeOptions, WithARatioOutsideItsRangeIsOurBug) {
  Workers workers(1);
  std::vector<float> update(100, 1.0F);
  for (const CodecKind kind : {CodecKind::kTopK, CodecKind::kChunkTopK}) {
    const auto codec = make_codec({.kind = kind}, {}, workers);
    for (const double ratio : {0.0, -0.5, 1.5, std::nan("")}) {
      EXPECT_THROW((void)codec->take({.residual = update, .keep_ratio = ratio}), std::logic_error);
    }
  }
}

TEST(SeedOfRound, IsDifferentForEveryStepPartAndSeed) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (std::uint64_t step = 0; step < 100; ++step) {
      for (std::uint64_t part = 0; part < 10; ++part) seeds.insert(seed_of_round(seed, step, part));
    }
  }
  EXPECT_EQ(seeds.size(), 5U * 100U * 10U);
}

}  // namespace
}  // namespace longhaul
