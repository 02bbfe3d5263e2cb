#include "tests/codec/codec_conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/codec/codec_cases.h"
#include "tests/codec/simd_targets.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::Content;
using testing_data::kAllContents;
using testing_data::kSizes;
using testing_data::make_update;
using testing_data::normal_update;
using testing_data::same_bits;

bool must_contract(CodecKind kind) {
  return kind == CodecKind::kDense || kind == CodecKind::kSign || kind == CodecKind::kTopK ||
         kind == CodecKind::kChunkTopK;
}

bool sends_exact_values(const CodecOptions& spec) {
  return spec.values == ValueFormat::kFp32 && spec.kind != CodecKind::kLowRank &&
         spec.kind != CodecKind::kSharedLowRank;
}

// Residual and increment of each size: the beginnings of one long update, where that has something
// in them.
std::vector<std::pair<std::vector<float>, std::vector<float>>> updates_of_all_sizes(
    Content content) {
  const std::size_t most = *std::ranges::max_element(kSizes);
  const std::vector<float> residual = make_update(content, most, 1);
  const std::vector<float> increment = make_update(content, most, 2);
  std::vector<std::pair<std::vector<float>, std::vector<float>>> updates;
  for (const std::size_t elements : kSizes) {
    const auto count = static_cast<std::ptrdiff_t>(elements);
    updates.emplace_back(std::vector(residual.begin(), residual.begin() + count),
                         std::vector(increment.begin(), increment.begin() + count));
    if (content == Content::kSingleSpike)
      updates.back().first = make_update(content, elements, elements);
  }
  return updates;
}

// Every codec with every content: what holds for all updates.
class EveryCodec : public testing::TestWithParam<std::tuple<CodecCase, Content>> {};

TEST_P(EveryCodec, ConservesWhatComesIn) {
  const auto& [codec_case, content] = GetParam();
  Workers workers(1);
  for (const auto& [residual, increment] : updates_of_all_sizes(content)) {
    SCOPED_TRACE(residual.size());
    const auto codec = make_case(codec_case, residual.size(), workers);
    const Transfer transfer = run_take(*codec, residual, increment, 1.0F, codec_case.keep_ratio);
    EXPECT_TRUE(conserves(transfer));
    if (must_contract(codec_case.spec.kind)) {
      EXPECT_TRUE(contracts(transfer));
    }
    if (sends_exact_values(codec_case.spec)) {
      EXPECT_TRUE(leaves_nothing_of_what_it_sent(transfer));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec,
                         testing::Combine(testing::ValuesIn(codec_cases()),
                                          testing::ValuesIn(kAllContents)),
                         [](const auto& each) {
                           return std::get<0>(each.param).name() + "_" +
                                  std::string(testing_data::name_of(std::get<1>(each.param)));
                         });

// Every codec with a few contents that differ most.
class EachCodec : public testing::TestWithParam<CodecCase> {
 protected:
  static constexpr Content kFewContents[] = {Content::kNormal, Content::kHuge,
                                             Content::kAlternatingSign};
  Workers workers_{1};

  struct Taken {
    ByteBuffer payload;
    Transfer transfer;
  };
  Taken take(std::vector<float> residual, std::vector<float> increment, float decay) {
    const std::size_t elements = residual.size();
    const auto codec = make_case(GetParam(), elements, workers_);
    Taken taken{.payload = {},
                .transfer = {.residual_before = residual,
                             .increment = std::move(increment),
                             .residual_decay = decay,
                             .decoded = {},
                             .residual_after = std::move(residual)}};
    taken.payload = codec->take({.residual = taken.transfer.residual_after,
                                 .increment = taken.transfer.increment,
                                 .residual_decay = decay,
                                 .keep_ratio = GetParam().keep_ratio,
                                 .seed = 7});
    taken.transfer.decoded = decode(taken.payload, elements);
    return taken;
  }
};

TEST_P(EachCodec, HonoursTheDecayOfTheResidual) {
  for (const std::size_t elements : {std::size_t{65}, std::size_t{4097}, std::size_t{65'537}}) {
    const std::vector<float> residual = normal_update(elements, 1);
    EXPECT_TRUE(conserves(take(residual, normal_update(elements, 2), 0.875F).transfer)) << elements;
    EXPECT_TRUE(conserves(take(residual, {}, 0.9F).transfer)) << elements;
  }
}

TEST_P(EachCodec, FeedsAndTakesInOneGoAsInTwo) {
  for (const Content content : kFewContents) {
    for (const std::size_t elements : {std::size_t{1}, std::size_t{513}, std::size_t{65'537}}) {
      std::vector<float> residual = make_update(content, elements, 1);
      const std::vector<float> increment = make_update(content, elements, 2);
      const Taken fused = take(residual, increment, 0.75F);
      kernels::feed(residual, increment, 0.75F);
      const Taken apart = take(residual, {}, 1.0F);
      EXPECT_TRUE(fused.payload == apart.payload);
      EXPECT_TRUE(same_bits(fused.transfer.residual_after, apart.transfer.residual_after));
    }
  }
}

TEST_P(EachCodec, GivesTheSameBitsOnEverySimdTarget) {
  RecordProperty("simd_targets_not_run", targets_not_run());
  for (const Content content : kFewContents) {
    for (const std::size_t elements : {std::size_t{65}, std::size_t{4097}, std::size_t{33'000}}) {
      const std::vector<float> residual = make_update(content, elements, 3);
      const std::vector<float> increment = make_update(content, elements, 4);
      const Taken expected = take(residual, increment, 0.9F);
      for_each_simd_target([&](const std::string& target) {
        SCOPED_TRACE(target + ", elements: " + std::to_string(elements));
        const Taken taken = take(residual, increment, 0.9F);
        EXPECT_TRUE(taken.payload == expected.payload);
        EXPECT_TRUE(same_bits(taken.transfer.residual_after, expected.transfer.residual_after));
        EXPECT_TRUE(same_bits(taken.transfer.decoded, expected.transfer.decoded));
      });
    }
  }
}

TEST_P(EachCodec, IsReadFromItsName) {
  const CodecOptions& spec = GetParam().spec;
  const Result<CodecOptions> parsed = parse_codec(spec.name());
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->kind, spec.kind);
  EXPECT_EQ(parsed->values, spec.values);
}

// What share of a normal update with this deviation reaches the threshold: the plan's guess for
// Threshold.
double share_sent(const CodecCase& codec_case, std::span<const float> update) {
  if (codec_case.spec.kind != CodecKind::kThreshold) return codec_case.keep_ratio;
  const std::size_t reached = kernels::count_at_least(update, codec_case.spec.threshold);
  return static_cast<double>(reached) / static_cast<double>(update.size());
}

TEST_P(EachCodec, ForeseesItsSize) {
  for (const std::size_t elements :
       {std::size_t{65'536}, std::size_t{65'537}, std::size_t{200'003}}) {
    SCOPED_TRACE(elements);
    std::vector<float> update = normal_update(elements, elements);
    const auto codec = make_case(GetParam(), elements, workers_);
    const double expected = codec->expected_bytes(elements, share_sent(GetParam(), update));
    const auto bytes = static_cast<double>(
        codec->take({.residual = update, .keep_ratio = GetParam().keep_ratio}).size());
    EXPECT_NEAR(expected, bytes, 0.02 * bytes + 64.0);
  }
}

TEST_P(EachCodec, SendsEverythingInTheEnd) {
  constexpr std::size_t kElements = 5000;
  const std::vector<float> update = normal_update(kElements, 3);
  std::vector<float> residual = update;
  std::vector<float> received(kElements, 0.0F);
  const auto codec = make_case(GetParam(), kElements, workers_);
  double left = std::numeric_limits<double>::infinity();
  for (std::uint64_t round = 0; round < 40; ++round) {
    const ByteBuffer payload = codec->take(
        {.residual = residual, .keep_ratio = std::max(0.1, GetParam().keep_ratio), .seed = round});
    const Result<PayloadView> view = PayloadView::parse(payload, kElements);
    ASSERT_TRUE(view.ok());
    add(*view, 1.0F, received);
    double now = 0.0;
    for (const float v : residual) now += std::abs(static_cast<double>(v));
    left = std::min(left, now);
  }
  const double at_first = static_cast<double>(kernels::sum_of_magnitudes(update));
  const bool has_cutoff = GetParam().spec.kind == CodecKind::kThreshold;
  EXPECT_LT(left, has_cutoff ? at_first : 0.35 * at_first);
  for (std::size_t i = 0; i < kElements; ++i)
    ASSERT_NEAR(received[i] + residual[i], update[i], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Codecs, EachCodec, testing::ValuesIn(codec_cases()),
                         [](const auto& each) { return each.param.name(); });

// Two mistakes that a conservation check must not overlook.

Transfer honest_transfer() {
  Workers workers(1);
  const auto codec =
      make_codec({.kind = CodecKind::kTopK, .values = ValueFormat::k4Bit}, {}, workers);
  return run_take(*codec, normal_update(70'000, 1), normal_update(70'000, 2), 1.0F, 0.01);
}

TEST(Conservation, HoldsForAnHonestTransfer) { EXPECT_TRUE(conserves(honest_transfer())); }

TEST(Conservation, FailsWhenOneResidualIsDropped) {
  Transfer transfer = honest_transfer();
  std::size_t dropped = 0;
  while (transfer.residual_after[dropped] == 0.0F) ++dropped;
  transfer.residual_after[dropped] = 0.0F;
  EXPECT_FALSE(conserves(transfer));
}

TEST(Conservation, FailsWhenTheWholeResidualIsDropped) {
  Transfer transfer = honest_transfer();
  std::ranges::fill(transfer.residual_after, 0.0F);
  EXPECT_FALSE(conserves(transfer));
}

TEST(Conservation, FailsWhenAMessageIsMergedTwice) {
  Transfer transfer = honest_transfer();
  for (float& v : transfer.decoded) v += v;
  EXPECT_FALSE(conserves(transfer));
}

TEST(CheckFinite, NamesThePositionAndChangesNothing) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t position : {0U, 1U, 63U, 64U, 500U, 998U, 999U}) {
      std::vector<float> update = normal_update(1000, 5);
      update[position] = bad;
      const std::vector<float> before = update;
      const Status status = check_finite(update);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::kNotFinite);
      EXPECT_EQ(status.error().message,
                "element " + std::to_string(position) + " of 1000 is not finite");
      EXPECT_TRUE(same_bits(update, before));
    }
  }
}

TEST(CheckFinite, NamesTheFirstOfSeveral) {
  std::vector<float> update(300, 1.0F);
  update[250] = update[77] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(check_finite(update).error().message, "element 77 of 300 is not finite");
}

TEST(CheckFinite, AcceptsEverythingFinite) {
  EXPECT_TRUE(check_finite({}).ok());
  for (const Content content : kAllContents)
    EXPECT_TRUE(check_finite(make_update(content, 3000, 1)).ok());
}

}  // namespace
}  // namespace longhaul
