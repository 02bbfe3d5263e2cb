// Each kernel against its plain meaning, on every SIMD target that this CPU has.
#include "longhaul/codec/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/codec/kernels_plain.h"
#include "tests/codec/simd_targets.h"
#include "tests/codec/test_data.h"

namespace longhaul::kernels {
namespace {

using testing_data::mixed_update;
using testing_data::same_bits;

constexpr std::size_t kLargest = 200;

// Specials that only bf16 and the finite check may see.
std::vector<float> with_non_finite(std::uint64_t seed) {
  std::vector<float> values = mixed_update(kLargest + 8, seed);
  for (std::size_t i = seed % 7; i < values.size(); i += 7) {
    values[i] = std::bit_cast<float>(
        static_cast<std::uint32_t>(0x7F800000U + (i % 3) * 0x12345U + (i % 2 << 31)));
  }
  return values;
}

// Calls body(offset, size) for every size, at offsets that are not aligned.
void for_each_span(const std::function<void(std::size_t offset, std::size_t size)>& body) {
  for_each_simd_target([&](const std::string& target) {
    for (std::size_t size = 0; size <= kLargest; ++size) {
      SCOPED_TRACE(target + ", size " + std::to_string(size));
      body(size % 5, size);
      if (testing::Test::HasFailure()) return;
    }
  });
}

bool same_bits_of(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Calls visit(increment, decay) with either, both or none of them.
template <typename Visit>
void for_each_feed(std::span<const float> increment, const Visit& visit) {
  for (const std::span<const float> added : {std::span<const float>(), increment}) {
    for (const float decay : {1.0F, 0.9F}) visit(added, decay);
  }
}

TEST(Kernels, RunOnEveryTargetOfThisCpu) {
  const std::string not_run = targets_not_run();
  RecordProperty("simd_targets_not_run", not_run);
  std::cout << "not run on this CPU: " << (not_run.empty() ? "none" : not_run) << '\n';
  int targets = 0;
  for_each_simd_target([&](const std::string& target) {
    std::cout << "run: " << target << '\n';
    ++targets;
  });
  EXPECT_GE(targets, 1);
}

TEST(Kernels, FeedLikeThePlainOne) {
  const std::vector<float> values = mixed_update(kLargest + 8, 1);
  const std::vector<float> increments = mixed_update(kLargest + 8, 2);
  for_each_span([&](std::size_t offset, std::size_t size) {
    for_each_feed(std::span(increments).subspan(offset + 1, size),
                  [&](auto increment, float decay) {
                    std::vector<float> got = values;
                    std::vector<float> expected = values;
                    feed(std::span(got).subspan(offset, size), increment, decay);
                    plain::feed(std::span(expected).subspan(offset, size), increment, decay);
                    ASSERT_TRUE(same_bits(got, expected));
                  });
  });
}

TEST(Kernels, MarkLikeThePlainOne) {
  const std::vector<float> values = mixed_update(kLargest + 8, 3);
  const std::vector<float> increments = mixed_update(kLargest + 8, 4);
  const std::size_t words = mark_words(kLargest) + 1;
  for_each_span([&](std::size_t offset, std::size_t size) {
    for_each_feed(
        std::span(increments).subspan(offset + 1, size), [&](auto increment, float decay) {
          std::vector<float> got = values;
          std::vector<float> expected = values;
          std::vector<std::uint64_t> marks(words, ~std::uint64_t{0});
          std::vector<std::uint64_t> expected_marks = marks;
          feed_and_mark(std::span(got).subspan(offset, size), increment, decay, 1.0F, marks);
          plain::feed_and_mark(std::span(expected).subspan(offset, size), increment, decay, 1.0F,
                               expected_marks);
          ASSERT_TRUE(same_bits(got, expected));
          ASSERT_EQ(marks, expected_marks);
          mark(std::span(got).subspan(offset, size), 1.0F, marks);
          ASSERT_EQ(marks, expected_marks);
        });
  });
}

TEST(Kernels, MarkADifferenceLikeThePlainOne) {
  const std::vector<float> a = mixed_update(kLargest + 8, 5);
  const std::vector<float> b = mixed_update(kLargest + 8, 6);
  for_each_span([&](std::size_t offset, std::size_t size) {
    const std::span minuend = std::span(a).subspan(offset, size);
    const std::span subtrahend = std::span(b).subspan(offset + 1, size);
    std::vector<float> got(size);
    std::vector<float> expected(size);
    std::vector<std::uint64_t> marks(mark_words(kLargest) + 1, ~std::uint64_t{0});
    std::vector<std::uint64_t> expected_marks = marks;
    const float largest = difference_and_mark(minuend, subtrahend, got, 1.0F, marks);
    EXPECT_EQ(largest,
              plain::difference_and_mark(minuend, subtrahend, expected, 1.0F, expected_marks));
    ASSERT_TRUE(same_bits(got, expected));
    ASSERT_EQ(marks, expected_marks);
    EXPECT_EQ(largest, largest_magnitude(got));
  });
}

TEST(Kernels, FindSetBitsLikeThePlainOne) {
  std::mt19937_64 random(13);
  for_each_span([&](std::size_t offset, std::size_t size) {
    std::vector<std::byte> bits(offset + size);
    const std::uint64_t emptiness = random() % 4;
    for (std::byte& byte : bits)
      byte = static_cast<std::byte>(random() % 4 < emptiness ? 0 : random());
    if (size % 50 == 49) std::ranges::fill(bits, std::byte{0xFF});
    std::vector<std::uint16_t> got(8 * size + kSetBitsSlack);
    std::vector<std::uint16_t> expected(8 * size);
    const std::span part = std::span(bits).subspan(offset);
    const std::size_t count = plain::set_bits(part, expected);
    ASSERT_EQ(set_bits(part, got), count);
    ASSERT_TRUE(std::ranges::equal(std::span(got).first(count), std::span(expected).first(count)));
  });
}

TEST(Kernels, NeedNoMoreRoomForSetBitsThanTheirSlack) {
  for_each_simd_target([&](const std::string&) {
    for (std::size_t set = 0; set <= 128;
         ++set) {  // under the address sanitizer, one more would be an error
      std::vector<std::byte> bits(16, std::byte{0});
      for (std::size_t i = 0; i < set; ++i) bits[15 - i / 8] |= std::byte{0x80} >> (i % 8);
      std::vector<std::uint16_t> positions(set + kSetBitsSlack);
      ASSERT_EQ(set_bits(bits, positions), set);
    }
  });
}

TEST(Kernels, CountAndRangeLikeThePlainOnes) {
  const std::vector<float> values = mixed_update(kLargest + 8, 5);
  for_each_span([&](std::size_t offset, std::size_t size) {
    const std::span part = std::span(values).subspan(offset, size);
    for (const float threshold :
         {0.0F, FLT_TRUE_MIN, 1.0F, FLT_MAX, std::numeric_limits<float>::infinity()}) {
      ASSERT_EQ(count_at_least(part, threshold), plain::count_at_least(part, threshold));
    }
    ASSERT_TRUE(same_bits_of(magnitude_range(part).min, plain::magnitude_range(part).min));
    ASSERT_TRUE(same_bits_of(magnitude_range(part).max, plain::magnitude_range(part).max));
  });
}

TEST(Kernels, SumLikeThePlainOnes) {
  std::vector<float> values = testing_data::normal_update(kLargest + 8, 6);
  const std::vector<float> others = testing_data::normal_update(kLargest + 8, 7);
  values[3] = FLT_TRUE_MIN;
  values[9] = -1e20F;
  for_each_span([&](std::size_t offset, std::size_t size) {
    const std::span part = std::span(values).subspan(offset, size);
    const std::span other = std::span(others).subspan(offset + 2, size);
    ASSERT_TRUE(same_bits_of(sum_of_magnitudes(part), plain::sum_of_magnitudes(part)));
    ASSERT_TRUE(same_bits_of(dot(part, other), plain::dot(part, other)));
    const Tail tail = tail_of_magnitudes(part, 0.01F);
    const Tail expected = plain::tail_of_magnitudes(part, 0.01F);
    ASSERT_TRUE(same_bits_of(tail.sum, expected.sum));
    ASSERT_EQ(tail.count, expected.count);
  });
}

TEST(Kernels, SumLongSpansLikeThePlainOnes) {  // longer than the blocks they are summed in
  for (const std::size_t size : {4095U, 4096U, 4097U, 10'007U}) {
    const std::vector<float> values = testing_data::normal_update(size, size);
    for_each_simd_target([&](const std::string& target) {
      SCOPED_TRACE(target);
      EXPECT_TRUE(same_bits_of(sum_of_magnitudes(values), plain::sum_of_magnitudes(values)));
      EXPECT_TRUE(same_bits_of(dot(values, values), plain::dot(values, values)));
      EXPECT_TRUE(same_bits_of(tail_of_magnitudes(values, 0.01F).sum,
                               plain::tail_of_magnitudes(values, 0.01F).sum));
      EXPECT_EQ(count_at_least(values, 0.01F), plain::count_at_least(values, 0.01F));
    });
  }
}

TEST(Kernels, AddAndSubtractLikeThePlainOnes) {
  const std::vector<float> values = mixed_update(kLargest + 8, 8);
  const std::vector<float> others = mixed_update(kLargest + 8, 9);
  for_each_span([&](std::size_t offset, std::size_t size) {
    const std::span other = std::span(others).subspan(offset + 1, size);
    for (const float weight : {1.0F, -1.0F, 0.3F, 0.0F}) {
      std::vector<float> got = values;
      std::vector<float> expected = values;
      add_scaled(other, weight, std::span(got).subspan(offset, size));
      plain::add_scaled(other, weight, std::span(expected).subspan(offset, size));
      ASSERT_TRUE(same_bits(got, expected));
      subtract(other, std::span(got).subspan(offset, size));
      plain::subtract(other, std::span(expected).subspan(offset, size));
      ASSERT_TRUE(same_bits(got, expected));
    }
  });
}

std::vector<Grid> grids() {
  std::vector<Grid> all;
  for (const unsigned bits : {0U, 1U, 3U, 7U}) {
    const auto top = static_cast<float>((1U << bits) - 1U);
    all.push_back({.lo = 0.25F, .step = 0.5F, .levels_per_unit = 2.0F, .magnitude_bits = bits});
    all.push_back({.lo = 1e-40F, .step = 0.0F, .levels_per_unit = 0.0F, .magnitude_bits = bits});
    if (top > 0)
      all.push_back({.lo = 0.0F,
                     .step = 3.3e38F / top,
                     .levels_per_unit = top / 3.3e38F,
                     .magnitude_bits = bits});
  }
  return all;
}

TEST(Kernels, QuantiseLikeThePlainOnes) {
  std::vector<float> values = mixed_update(kLargest + 8, 10);
  for (std::size_t i = 0; i < values.size(); i += 3)
    values[i] = static_cast<float>(i % 40) * -0.25F;  // ties
  for_each_span([&](std::size_t offset, std::size_t size) {
    const std::span part = std::span(values).subspan(offset, size);
    for (const Grid& grid : grids()) {
      std::vector<std::uint8_t> codes(size);
      std::vector<std::uint8_t> expected_codes(size);
      quantise(part, grid, codes);
      plain::quantise(part, grid, expected_codes);
      ASSERT_EQ(codes, expected_codes);
      std::vector<float> got(size);
      std::vector<float> expected(size);
      dequantise(codes, grid, got);
      plain::dequantise(codes, grid, expected);
      ASSERT_TRUE(same_bits(got, expected));
    }
  });
}

TEST(Kernels, DequantiseEveryCodeLikeThePlainOne) {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
  for_each_simd_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    for (const Grid& grid : grids()) {
      std::vector<float> got(codes.size());
      std::vector<float> expected(codes.size());
      dequantise(codes, grid, got);
      plain::dequantise(codes, grid, expected);
      EXPECT_TRUE(same_bits(got, expected));
    }
  });
}

TEST(Kernels, ConvertToBf16LikeThePlainOnes) {
  const std::vector<float> values = with_non_finite(11);
  for_each_span([&](std::size_t offset, std::size_t size) {
    const std::span part = std::span(values).subspan(offset, size);
    std::vector<std::uint16_t> got(size);
    std::vector<std::uint16_t> expected(size);
    to_bf16(part, got);
    plain::to_bf16(part, expected);
    ASSERT_EQ(got, expected);
    std::vector<float> back(size);
    std::vector<float> expected_back(size);
    from_bf16(got, back);
    plain::from_bf16(expected, expected_back);
    ASSERT_TRUE(same_bits(back, expected_back));
  });
}

TEST(Kernels, FindTheFirstThatIsNotFinite) {
  const std::vector<float> finite = mixed_update(kLargest + 8, 12);
  for_each_span([&](std::size_t offset, std::size_t size) {
    const std::span whole = std::span(finite).subspan(offset, size);
    ASSERT_EQ(first_non_finite(whole), size);
    if (size == 0) return;
    std::vector<float> values(whole.begin(), whole.end());
    values[size / 2] = values[size - 1] = std::numeric_limits<float>::quiet_NaN();
    ASSERT_EQ(first_non_finite(values), size / 2);
    ASSERT_EQ(plain::first_non_finite(values), size / 2);
  });
}

TEST(Kernels, RefuseSpansOfDifferentLength) {
  std::vector<float> three(3, 1.0F);
  std::vector<float> four(4, 1.0F);
  std::vector<std::uint8_t> codes(4);
  std::vector<std::uint16_t> halves(4);
  EXPECT_THROW(feed(three, four), std::logic_error);
  EXPECT_THROW(feed_and_mark(three, {}, 1.0F, 1.0F, {}), std::logic_error);
  EXPECT_THROW(mark(three, 1.0F, {}), std::logic_error);
  EXPECT_THROW((void)dot(three, four), std::logic_error);
  EXPECT_THROW(add_scaled(three, 1.0F, four), std::logic_error);
  EXPECT_THROW(subtract(three, four), std::logic_error);
  EXPECT_THROW(quantise(three, {}, codes), std::logic_error);
  EXPECT_THROW(dequantise(codes, {}, three), std::logic_error);
  EXPECT_THROW(to_bf16(three, halves), std::logic_error);
  EXPECT_THROW(from_bf16(halves, three), std::logic_error);
}

}  // namespace
}  // namespace longhaul::kernels
