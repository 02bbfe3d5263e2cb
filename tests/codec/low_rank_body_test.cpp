#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "longhaul/codec/payload.h"
#include "longhaul/codec/value_format.h"

namespace longhaul {
namespace {

struct Matrix {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  std::uint32_t rank = 0;
};

ByteBuffer low_rank_payload(std::uint64_t elements, const std::vector<Matrix>& matrices,
                            std::vector<float> values) {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(matrices.size()));
  for (const Matrix& matrix : matrices) {
    for (const std::uint32_t field : {matrix.rows, matrix.columns, matrix.rank}) out.u32(field);
  }
  encode_values(ValueFormat::kFp32, values,
                out.extend(value_bytes(ValueFormat::kFp32, values.size())));
  const ByteBuffer body = std::move(out).release();
  return seal_payload({.kind = PayloadKind::kLowRank, .elements = elements}, {&body, 1});
}

// 29 products, each below a 29th of the largest float, whose rounded sum is infinite.
TEST(LowRankBody, RefusesFactorsWhoseProductOverflowsByRounding) {
  constexpr std::uint32_t kRank = 29;
  std::vector<float> factors(2 * kRank * kRank, 0x1.11196ap+0F);
  std::fill(factors.begin() + kRank * kRank, factors.end(), 0x1.08cbc2p+123F);
  const Matrix matrix{.rows = kRank, .columns = kRank, .rank = kRank};
  const ByteBuffer payload = low_rank_payload(kRank * kRank, {matrix}, factors);
  const Result<PayloadView> view = PayloadView::parse(payload, kRank * kRank);
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.error().code, ErrorCode::kNotFinite);
}

TEST(LowRankBody, DecodesTilesThatBeginInsideABlockOrBetweenTwo) {
  for (const std::uint32_t first : {1U, 65535U, 65536U, 65537U, 131072U}) {
    const std::vector<Matrix> matrices{
        {.columns = first}, {.columns = 1}, {.rows = 2, .columns = 70000}};
    std::vector<float> values(first + 1 + 140000);
    std::iota(values.begin(), values.end(), 1.0F);
    const ByteBuffer payload = low_rank_payload(values.size(), matrices, values);
    const Result<PayloadView> view = PayloadView::parse(payload, values.size());
    ASSERT_TRUE(view.ok()) << view.error().message;
    std::vector<float> sum(values.size());
    add(*view, 1.0F, sum);
    EXPECT_EQ(sum, values) << first;
  }
}

}  // namespace
}  // namespace longhaul
