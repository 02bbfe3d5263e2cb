// The number of threads changes how fast codecs are, and nothing else.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "longhaul/codec/accumulate.h"
#include "tests/codec/codec_cases.h"
#include "tests/codec/codec_conformance.h"
#include "tests/codec/payload_samples.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::Content;
using testing_data::make_update;
using testing_data::same_bits;

constexpr std::size_t kElements = 200'003;
constexpr std::size_t kCrews[] = {2, 3, 5};

class ThreadedCodec : public testing::TestWithParam<CodecCase> {
 protected:
  struct Taken {
    ByteBuffer payload;
    std::vector<float> residual;
  };
  static Taken take(const std::vector<float>& residual, const std::vector<float>& increment,
                    std::size_t threads) {
    Workers workers(threads);
    Taken taken{.payload = {}, .residual = residual};
    taken.payload = make_case(GetParam(), kElements, workers)
                        ->take({.residual = taken.residual,
                                .increment = increment,
                                .residual_decay = 0.9F,
                                .keep_ratio = GetParam().keep_ratio,
                                .seed = 3});
    return taken;
  }
};

TEST_P(ThreadedCodec, GivesTheSameBitsForEveryCrew) {
  for (const Content content :
       {Content::kNormal, Content::kAlternatingSign, Content::kMostlyZeros}) {
    const std::vector<float> residual = make_update(content, kElements, 1);
    const std::vector<float> increment = make_update(content, kElements, 2);
    const Taken alone = take(residual, increment, 1);
    for (const std::size_t threads : kCrews) {
      SCOPED_TRACE(std::string(testing_data::name_of(content)) +
                   ", threads: " + std::to_string(threads));
      const Taken together = take(residual, increment, threads);
      EXPECT_TRUE(together.payload == alone.payload);
      EXPECT_TRUE(same_bits(together.residual, alone.residual));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, ThreadedCodec, testing::ValuesIn(codec_cases()),
                         [](const auto& each) { return each.param.name(); });

TEST(ThreadedSum, GivesTheSameBitsForEveryCrew) {
  std::vector<WeightedPayload> payloads;
  for (const ByteBuffer& bytes : payload_of_each_kind(kElements))
    payloads.push_back(
        {.payload = CheckedPayload::check(bytes, kElements).value(), .weight = 0.3F});
  Workers one(1);
  std::vector<float> alone(kElements);
  sum_payloads(payloads, alone, one);
  for (const std::size_t threads : kCrews) {
    Workers workers(threads);
    std::vector<float> together(kElements, 1.0F);
    sum_payloads(payloads, together, workers);
    EXPECT_TRUE(same_bits(together, alone));
  }
}

TEST(ThreadedUnion, GivesTheSameBytesForEveryCrew) {
  const ByteBuffer top = encoded({.kind = CodecKind::kTopK}, 0.01, kElements, 1);
  const ByteBuffer random = encoded({.kind = CodecKind::kRandomK}, 0.01, kElements, 2);
  const WeightedPayload payloads[] = {
      {.payload = CheckedPayload::check(top, kElements).value()},
      {.payload = CheckedPayload::check(random, kElements).value()}};
  Workers one(1);
  const CheckedPayload alone = encode_union(payloads, kElements, one);
  for (const std::size_t threads : kCrews) {
    Workers workers(threads);
    EXPECT_TRUE(*encode_union(payloads, kElements, workers).bytes() == *alone.bytes());
  }
}

}  // namespace
}  // namespace longhaul
