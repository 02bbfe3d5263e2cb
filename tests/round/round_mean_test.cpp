// The mean of a round against a plain sum in replica order, and what it costs on the way down.
#include "longhaul/round/round_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;

constexpr CodecOptions kDense{.kind = CodecKind::kDense, .values = ValueFormat::kFp32};

ByteBuffer encode(const CodecOptions& spec, std::vector<float> update, double keep_ratio = 1.0) {
  Workers alone;
  return make_codec(spec, {}, alone)->take({.residual = update, .keep_ratio = keep_ratio});
}

std::vector<float> decode(ByteView payload, std::size_t elements) {
  std::vector<float> values(elements);
  const Result<PayloadView> view = PayloadView::parse(payload, elements);
  EXPECT_TRUE(view.ok());
  if (view.ok()) add(*view, 1.0F, values);
  return values;
}

// A round whose payloads it owns.
struct Round {
  std::size_t elements = 0;
  std::vector<ByteBuffer> payloads;
  std::vector<float> weights = std::vector<float>(payloads.size(), 1.0F);

  [[nodiscard]] std::vector<WeightedPayload> sent() const {
    std::vector<WeightedPayload> all;
    for (std::size_t i = 0; i < payloads.size(); ++i)
      all.push_back({.payload = CheckedPayload::check_update(payloads[i], elements).value(),
                     .weight = weights[i]});
    return all;
  }
  [[nodiscard]] RoundMean mean(std::size_t threads = 1) const {
    Workers workers(threads);
    return mean_of_round(sent(), elements, workers);
  }
  [[nodiscard]] std::vector<float> values(std::size_t threads = 1) const {
    return decode(*mean(threads).payload.bytes(), elements);
  }
  [[nodiscard]] std::size_t bytes_of_all_but(std::size_t replica) const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < payloads.size(); ++i)
      bytes += i == replica ? 0 : payloads[i].size();
    return bytes;
  }
};

Round sparse_round(std::size_t elements, ValueFormat format, bool same_support) {
  Round round{.elements = elements};
  for (std::uint64_t i = 0; i < 4; ++i) {
    round.payloads.push_back(encode({.kind = CodecKind::kTopK, .values = format},
                                    normal_update(elements, same_support ? 1 : 10 + i), 0.02));
    round.weights.push_back(1.0F);
  }
  return round;
}

TEST(RoundMean, IsTheWeightedSumInReplicaOrder) {
  constexpr std::size_t kElements = 1000;
  Round round{.elements = kElements, .weights = {1.0F, 3.0F, 0.5F}};
  for (std::uint64_t i = 0; i < 3; ++i)
    round.payloads.push_back(encode(kDense, normal_update(kElements, i)));
  std::vector<float> expected(kElements);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<float> update = normal_update(kElements, i);
    const float weight = round.weights[i] / 4.5F;
    for (std::size_t k = 0; k < kElements; ++k) expected[k] += weight * update[k];
  }
  const RoundMean mean = round.mean();
  EXPECT_EQ(round.values(), expected);
}

TEST(RoundMean, HasTheSameBitsForEveryThreadCount) {
  Round round = sparse_round(70'001, ValueFormat::kBf16, false);
  round.payloads.push_back(encode(kDense, normal_update(round.elements, 99)));
  round.weights.push_back(2.0F);
  for (const std::size_t threads : {2U, 3U}) {
    EXPECT_TRUE(same_bits(round.values(1), round.values(threads))) << threads << " threads";
  }
}

TEST(RoundMean, AnEmptySubmissionCountsInTheDivisor) {
  const Round round{.elements = 2,
                    .payloads = {encode(kDense, {4.0F, -8.0F}), ByteBuffer{},
                                 encode(kDense, {0.0F, 16.0F}), ByteBuffer{}}};
  const RoundMean mean = round.mean();
  EXPECT_EQ(round.values(), (std::vector<float>{1.0F, 2.0F}));
}

TEST(RoundMean, TheWeightOfAnEmptySubmissionCountsToo) {
  const Round round{
      .elements = 1, .payloads = {encode(kDense, {8.0F}), ByteBuffer{}}, .weights = {1.0F, 7.0F}};
  const RoundMean mean = round.mean();
  EXPECT_EQ(round.values(), std::vector<float>{1.0F});
}

TEST(RoundMean, OfNothingIsZeroAndFree) {
  const Round round{.elements = 3, .payloads = {ByteBuffer{}, ByteBuffer{}}};
  const RoundMean mean = round.mean();
  EXPECT_EQ(round.values(), std::vector<float>(3, 0.0F));
  for (const DownLoad& down : mean.down) EXPECT_EQ(down.bytes, 0U);
}

TEST(RoundMean, DenseUpdatesComeBackDense) {
  constexpr std::size_t kElements = 500;
  Round round{.elements = kElements, .weights = {1, 1, 1}};
  for (std::uint64_t i = 0; i < 3; ++i)
    round.payloads.push_back(encode(kDense, normal_update(kElements, i)));
  const RoundMean mean = round.mean();
  ASSERT_EQ(mean.down.size(), 3U);
  for (const DownLoad& down : mean.down) {
    EXPECT_EQ(down.way, WayDown::kDense);
    EXPECT_EQ(down.bytes, encode(kDense, round.values()).size());
  }
}

TEST(RoundMean, UpdatesOfOneSupportComeBackAsTheirUnionWhichIsTheMean) {
  const Round round = sparse_round(20'000, ValueFormat::kFp32, true);
  const RoundMean mean = round.mean();
  std::vector<WeightedPayload> shares = round.sent();
  for (WeightedPayload& one : shares) one.weight = 0.25F;
  Workers alone;
  const ByteBuffer joined = *encode_union(shares, round.elements, alone).bytes();
  for (const DownLoad& down : mean.down) {
    EXPECT_EQ(down.way, WayDown::kUnion);
    EXPECT_EQ(down.bytes, joined.size());
  }
  EXPECT_EQ(decode(joined, round.elements), round.values());
}

TEST(RoundMean, SmallUpdatesOfDifferentSupportsAreForwarded) {
  Round round = sparse_round(20'000, ValueFormat::k2Bit, false);
  round.payloads[2].clear();
  const RoundMean mean = round.mean();
  std::vector<float> summed(round.elements);  // by a replica that got the payloads
  for (const ByteBuffer& payload : round.payloads) {
    if (payload.empty()) continue;
    add(PayloadView::parse(payload, round.elements).value(), 0.25F, summed);
  }
  EXPECT_EQ(summed, round.values());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(mean.down[i].way, WayDown::kForwarded);
    EXPECT_EQ(mean.down[i].bytes, round.bytes_of_all_but(i));
  }
}

TEST(RoundMean, NeverCostsMoreThanAnyWay) {
  for (const ValueFormat format : {ValueFormat::kFp32, ValueFormat::kBf16, ValueFormat::k2Bit}) {
    const Round round = sparse_round(5000, format, false);
    const RoundMean mean = round.mean();
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_LE(mean.down[i].bytes, round.bytes_of_all_but(i));
      EXPECT_LE(mean.down[i].bytes, kPayloadHeaderBytes + 4 * round.elements);
    }
  }
}

TEST(RoundMean, APayloadOfAnotherSizeIsABug) {
  Round round{.elements = 3, .payloads = {encode(kDense, {1, 2, 3})}};
  std::vector<WeightedPayload> sent = round.sent();
  sent.push_back({.payload = CheckedPayload::check(encode(kDense, {1, 2}), 2).value()});
  Workers alone;
  EXPECT_THROW((void)mean_of_round(sent, 3, alone), std::logic_error);
}

}  // namespace
}  // namespace longhaul
