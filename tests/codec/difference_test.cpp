// An update that stands nowhere gives the payload that it would give as a residual.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "longhaul/codec/update_reader.h"
#include "tests/codec/codec_cases.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;

constexpr std::size_t kDifferenceElements = 2 * kTileElements + 4321;

// A shared model, a position near it, and three payloads that were announced with different
// weights.
struct DifferenceCase {
  DifferenceCase() {
    for (const char* codec : {"top_k/bf16", "random_k/4bit", "dense/bf16"}) {
      std::vector<float> update = normal_update(kDifferenceElements, announced.size());
      ByteBuffer bytes = make_codec(parse_codec(codec).value(), {}, workers)
                             ->take({.residual = update, .keep_ratio = 0.02, .seed = 5});
      announced.push_back(
          {.payload = CheckedPayload::of_sealed(std::move(bytes), kDifferenceElements),
           .weight = 0.5F + static_cast<float>(announced.size())});
    }
  }

  // As it is after the local step.
  [[nodiscard]] std::vector<float> residual() const {
    std::vector<float> rest(kDifferenceElements);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = shared[i] - (position[i] - 0.25F);
    for (const WeightedPayload& one : announced) add(one.payload.view(), -one.weight, rest);
    return rest;
  }

  [[nodiscard]] TakeOptions request(double keep_ratio) {
    return {.shared = shared,
            .position = position,
            .announced = announced,
            .move =
                [this](std::size_t first, std::size_t count) {
                  for (std::size_t i = first; i < first + count; ++i) position[i] -= 0.25F;
                },
            .preview =
                [](std::size_t /*first*/, std::span<float> out) {
                  for (float& x : out) x -= 0.25F;
                },
            .keep_ratio = keep_ratio,
            .seed = 7};
  }

  Workers workers;
  std::vector<WeightedPayload> announced;
  std::vector<float> shared = normal_update(kDifferenceElements, 10);
  std::vector<float> position = normal_update(kDifferenceElements, 11);
};

class Difference : public ::testing::TestWithParam<CodecCase> {};

TEST_P(Difference, GivesThePayloadOfTheResidual) {
  for (const std::size_t threads : {1U, 3U}) {
    Workers workers(threads);
    DifferenceCase one;
    std::vector<float> residual = one.residual();
    const double keep_ratio = GetParam().keep_ratio;
    const ByteBuffer expected =
        make_codec(GetParam().spec, {}, workers)
            ->take({.residual = residual, .keep_ratio = keep_ratio, .seed = 7});
    const auto codec = make_codec(GetParam().spec, {}, workers);
    EXPECT_EQ(codec->take_difference(one.request(keep_ratio), workers), expected);
    std::vector<float> rest(kDifferenceElements);
    read_difference(one.request(keep_ratio), workers, rest);
    one.position = normal_update(kDifferenceElements, 11);
    EXPECT_TRUE(same_bits(rest, one.residual())) << "the position moved once";
  }
}

TEST_P(Difference, GivesNothingWhereAnElementIsNotBelowTheLimit) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 2e30F}) {
    DifferenceCase one;
    one.position[kTileElements + 5] = bad;
    TakeOptions request = one.request(GetParam().keep_ratio);
    request.limit = 1e30F;
    const auto codec = make_codec(GetParam().spec, {}, one.workers);
    EXPECT_TRUE(codec->take_difference(request, one.workers).empty()) << bad;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, Difference, ::testing::ValuesIn(codec_cases()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace longhaul
