#include "longhaul/codec/value_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/codec/bf16.h"
#include "longhaul/codec/kernels.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::Content;
using testing_data::make_update;
using testing_data::same_bits;

constexpr ValueFormat kFormats[] = {ValueFormat::kFp32, ValueFormat::kBf16, ValueFormat::k8Bit,
                                    ValueFormat::k4Bit, ValueFormat::k2Bit, ValueFormat::k1Bit};

struct Encoded {
  ByteBuffer bytes;
  std::vector<float> promised;  // what the encoder says a decoder will read
};

Encoded encode(ValueFormat format, std::vector<float> values) {
  Encoded encoded{.bytes = ByteBuffer(value_bytes(format, values.size())),
                  .promised = std::move(values)};
  encode_values(format, encoded.promised, encoded.bytes);
  return encoded;
}

class EveryFormat : public testing::TestWithParam<ValueFormat> {};

TEST_P(EveryFormat, DecodesToWhatTheEncoderPromised) {
  for (const Content content : testing_data::kAllContents) {
    for (const std::size_t count : {0U, 1U, 2U, 7U, 63U, 511U, 512U, 513U, 1025U, 5000U}) {
      SCOPED_TRACE(std::string(testing_data::name_of(content)) + " " + std::to_string(count));
      const Encoded encoded = encode(GetParam(), make_update(content, count, count));
      EXPECT_TRUE(check_values(GetParam(), encoded.bytes, count).ok());
      std::vector<float> decoded(count);
      decode_values(GetParam(), encoded.bytes, decoded);
      EXPECT_TRUE(same_bits(decoded, encoded.promised));
    }
  }
}

TEST_P(EveryFormat, KeepsSigns) {
  const std::vector<float> values = make_update(Content::kNormal, 600, 1);
  const Encoded encoded = encode(GetParam(), values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::signbit(encoded.promised[i]), std::signbit(values[i])) << i;
  }
}

TEST_P(EveryFormat, TakesItsBitsAndAGridPerBlock) {
  const ValueFormat format = GetParam();
  const std::size_t grid = bits_of(format) > 8 ? 0 : (format == ValueFormat::k1Bit ? 2 : 4);
  EXPECT_EQ(value_bytes(format, 0), 0U);
  EXPECT_EQ(value_bytes(format, kBlockValues), grid + kBlockValues * bits_of(format) / 8);
  EXPECT_EQ(value_bytes(format, 3 * kBlockValues), 3 * value_bytes(format, kBlockValues));
  EXPECT_EQ(value_bytes(format, kBlockValues + 3),
            value_bytes(format, kBlockValues) + grid + (3 * bits_of(format) + 7) / 8);
}

TEST_P(EveryFormat, NeverMakesAFiniteNumberInfinite) {
  for (const float value : {FLT_MAX, -FLT_MAX, 3.3961775e38F}) {
    const Encoded encoded = encode(GetParam(), std::vector<float>(700, value));
    EXPECT_EQ(kernels::first_non_finite(encoded.promised), 700U);
    EXPECT_TRUE(check_values(GetParam(), encoded.bytes, 700).ok());
    EXPECT_NEAR(encoded.promised[0] / value, 1.0, 0.005);
  }
}

TEST_P(EveryFormat, IsReadFromItsName) {
  EXPECT_EQ(parse_value_format(name_of(GetParam())).value(), GetParam());
}

TEST_P(EveryFormat, RefusesABufferOfTheWrongSize) {
  std::vector<float> values(10, 1.0F);
  ByteBuffer bytes(value_bytes(GetParam(), 10) + 1);
  EXPECT_THROW(encode_values(GetParam(), values, bytes), std::logic_error);
  EXPECT_THROW(decode_values(GetParam(), bytes, values), std::logic_error);
  EXPECT_THROW((void)check_values(GetParam(), bytes, 10), std::logic_error);
}

// Whatever passes the check decodes to finite numbers: every value of each byte, one at a time.
TEST_P(EveryFormat, DecodesToFiniteNumbersWhateverPassesTheCheck) {
  for (const Content content : {Content::kNormal, Content::kHuge, Content::kDenormals}) {
    Encoded encoded = encode(GetParam(), make_update(content, 21, 9));
    std::vector<float> decoded(21);
    for (std::byte& byte : encoded.bytes) {
      const std::byte before = byte;
      for (unsigned value = 0; value < 256; ++value) {
        byte = static_cast<std::byte>(value);
        if (!check_values(GetParam(), encoded.bytes, 21).ok()) continue;
        decode_values(GetParam(), encoded.bytes, decoded);
        ASSERT_EQ(kernels::first_non_finite(decoded), 21U);
      }
      byte = before;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, testing::ValuesIn(kFormats),
                         [](const auto& each) { return "f" + std::string(name_of(each.param)); });

TEST(Fp32Values, AreSentAsTheyAre) {
  const std::vector<float> values = make_update(Content::kHeavyTailed, 1000, 2);
  EXPECT_TRUE(same_bits(encode(ValueFormat::kFp32, values).promised, values));
}

TEST(Bf16Values, AreOffByAtMostOneIn256) {
  const std::vector<float> values = make_update(Content::kHeavyTailed, 1000, 2);
  const Encoded encoded = encode(ValueFormat::kBf16, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::abs(encoded.promised[i] - values[i]), std::abs(values[i]) / 256.0F);
  }
}

// Half a step of the grid, plus what the rounded ends of the grid are off.
TEST(GridValues, AreOffByAtMostHalfAStep) {
  for (const ValueFormat format : {ValueFormat::k8Bit, ValueFormat::k4Bit}) {
    const auto steps = static_cast<float>((1U << (bits_of(format) - 1)) - 1U);
    const std::vector<float> values = make_update(Content::kNormal, kBlockValues, 3);
    const Encoded encoded = encode(format, values);
    const auto [lo, hi] = kernels::magnitude_range(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::abs(encoded.promised[i] - values[i]),
                (hi - lo) / (2.0F * steps) + hi / 250.0F);
    }
  }
}

TEST(TwoBitValues, AreTheMeansOfTheSmallAndTheLarge) {
  std::vector<float> values(512, 1.0F);
  for (std::size_t i = 0; i < values.size(); i += 4) values[i] = -4.0F;
  EXPECT_TRUE(same_bits(encode(ValueFormat::k2Bit, values).promised, values));
}

TEST(OneBitValues, AreTheMeanMagnitudeWithASign) {
  const Encoded encoded = encode(ValueFormat::k1Bit, {1.0F, -3.0F, 2.0F, -2.0F});
  EXPECT_TRUE(same_bits(encoded.promised, std::vector<float>{2.0F, -2.0F, 2.0F, -2.0F}));
}

TEST(ValueFormats, AreWrittenLowestBitsFirst) {
  const Encoded encoded =
      encode(ValueFormat::k1Bit, {-1.0F, 1.0F, 1.0F, -1.0F, 1.0F, 1.0F, 1.0F, 1.0F, -1.0F});
  const ByteBuffer expected{std::byte{0x80}, std::byte{0x3F}, std::byte{0b1001}, std::byte{1}};
  EXPECT_EQ(encoded.bytes, expected);
}

TEST(CheckValues, NamesThePositionOfWhatIsNotFinite) {
  for (const ValueFormat format : {ValueFormat::kFp32, ValueFormat::kBf16}) {
    Encoded encoded = encode(format, std::vector<float>(600, 1.0F));
    const std::size_t width = bits_of(format) / 8;
    encoded.bytes[555 * width + width - 1] = std::byte{0x7F};
    encoded.bytes[555 * width + width - 2] = std::byte{0xC0};
    const Status status = check_values(format, encoded.bytes, 600);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error(), (Error{ErrorCode::kNotFinite, "value 555 is not finite"}));
  }
}

TEST(CheckValues, RefusesGridsThatRunDownwardsOrAreNotFinite) {
  const auto check = [](std::uint16_t lo, std::uint16_t hi) {
    ByteBuffer bytes(value_bytes(ValueFormat::k4Bit, 4), std::byte{0});
    store_le(bytes.data(), lo);
    store_le(bytes.data() + 2, hi);
    return check_values(ValueFormat::k4Bit, bytes, 4).ok();
  };
  EXPECT_TRUE(check(0x3F80, 0x3F80));
  EXPECT_TRUE(check(0x0000, 0x7F7F));
  EXPECT_FALSE(check(0x3F81, 0x3F80));
  EXPECT_FALSE(check(0x0000, 0x7F80));
  EXPECT_FALSE(check(0x0000, 0x7FC0));
  EXPECT_FALSE(check(0x8000, 0x8000));
  EXPECT_FALSE(check(0x0000, 0xBF80));
}

TEST(ParseValueFormat, SaysWhatItExpectedAndWhatItGot) {
  const Result<ValueFormat> parsed = parse_value_format("int8");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message,
            "value format: expected fp32, bf16, 8bit, 4bit, 2bit or 1bit, got \"int8\"");
}

}  // namespace
}  // namespace longhaul
