#include "longhaul/codec/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "longhaul/base/check.h"
#include "longhaul/codec/bf16.h"
#include "longhaul/codec/kernels_plain.h"

#ifndef LONGHAUL_CODEC_BITS_OF_BYTE  // once, not once per target
#define LONGHAUL_CODEC_BITS_OF_BYTE
static_assert(std::endian::native == std::endian::little, "marks are stored as bytes");

namespace longhaul::kernels {
namespace {

constexpr std::array<std::uint8_t, 256> kCountOfByte = [] {
  std::array<std::uint8_t, 256> counts{};
  for (unsigned byte = 0; byte < 256; ++byte)
    counts[byte] = static_cast<std::uint8_t>(std::popcount(byte));
  return counts;
}();

// The positions of the bits of a byte, ascending; zeros behind them.
constexpr std::array<std::array<std::uint8_t, 8>, 256> kBitsOfByte = [] {
  std::array<std::array<std::uint8_t, 8>, 256> rows{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::size_t count = 0;
    for (std::uint8_t bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1U) != 0) rows[byte][count++] = bit;
    }
  }
  return rows;
}();

}  // namespace
}  // namespace longhaul::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "longhaul/codec/select_kernels.cpp"
#include "hwy/foreach_target.h"  // includes this file once per target
#include "longhaul/codec/kernels_target.h"

HWY_BEFORE_NAMESPACE();
namespace longhaul::kernels::HWY_NAMESPACE {
namespace {

template <bool kAdd, bool kDecay>
HWY_INLINE auto fed(Floats d, const float* residual, const float* increment, float decay) {
  auto v = hn::LoadU(d, residual);
  if constexpr (kDecay) v = hn::Mul(v, hn::Set(d, decay));
  if constexpr (kAdd) v = hn::Add(v, hn::LoadU(d, increment));
  return v;
}

template <bool kAdd, bool kDecay>
void feed_loop(float* residual, const float* increment, float decay, std::size_t count) {
  const Floats d;
  sweep<kWidth>(
      count,
      [&](std::size_t i) HWY_ATTR {
        hn::StoreU(fed<kAdd, kDecay>(d, residual + i, kAdd ? increment + i : nullptr, decay), d,
                   residual + i);
      },
      [&](std::size_t i) {
        if constexpr (kDecay) residual[i] *= decay;
        if constexpr (kAdd) residual[i] += increment[i];
      });
}

// One byte of marks for eight elements that start at `residual`.
template <bool kAdd, bool kDecay>
HWY_INLINE void mark_group(float* residual, const float* increment, float decay, float threshold,
                           std::uint8_t* marks) {
  const Floats d;
  const auto limit = hn::Set(d, threshold);
  if constexpr (kWidth >= 8) {
    const auto v = fed<kAdd, kDecay>(d, residual, increment, decay);
    if constexpr (kAdd || kDecay) hn::StoreU(v, d, residual);
    hn::StoreMaskBits(d, hn::Ge(hn::Abs(v), limit), marks);
  } else {
    unsigned byte = 0;
    for (std::size_t j = 0; j < 8; j += kWidth) {
      const auto v = fed<kAdd, kDecay>(d, residual + j, kAdd ? increment + j : nullptr, decay);
      if constexpr (kAdd || kDecay) hn::StoreU(v, d, residual + j);
      std::uint8_t part[8] = {};
      hn::StoreMaskBits(d, hn::Ge(hn::Abs(v), limit), part);
      byte |= static_cast<unsigned>(part[0]) << j;
    }
    *marks = static_cast<std::uint8_t>(byte);
  }
}

template <bool kAdd, bool kDecay>
void feed_and_mark_loop(std::span<float> residual, std::span<const float> increments, float decay,
                        float threshold, std::span<std::uint64_t> marks) {
  constexpr std::size_t kGroup = std::max<std::size_t>(kWidth, 8);
  auto* bytes = reinterpret_cast<std::uint8_t*>(marks.data());
  float* values = residual.data();
  const float* increment = increments.data();
  const std::size_t whole = residual.size() / 64 * 64;
  for (std::size_t i = 0; i < whole; i += kGroup) {
    mark_group<kAdd, kDecay>(values + i, kAdd ? increment + i : nullptr, decay, threshold,
                             bytes + i / 8);
  }
  if (whole == residual.size()) return;
  plain::feed_and_mark(residual.subspan(whole), kAdd ? increments.subspan(whole) : increments,
                       decay, threshold, marks.subspan(whole / 64));
}

// One byte of marks for eight elements.
HWY_INLINE void mark_difference(const float* a, const float* b, float threshold, float* out,
                                std::uint8_t* marks, hn::Vec<Words>& largest) {
  const Floats d;
  const Words dw;
  const auto limit = hn::Set(d, threshold);
  unsigned byte = 0;
  for (std::size_t j = 0; j < std::max<std::size_t>(kWidth, 8); j += kWidth) {
    const auto v = hn::Sub(hn::LoadU(d, a + j), hn::LoadU(d, b + j));
    hn::StoreU(v, d, out + j);
    const auto magnitude = hn::Abs(v);
    largest = hn::Max(largest, hn::BitCast(dw, magnitude));
    if constexpr (kWidth >= 8) {
      hn::StoreMaskBits(d, hn::Ge(magnitude, limit), marks);
    } else {
      std::uint8_t part[8] = {};
      hn::StoreMaskBits(d, hn::Ge(magnitude, limit), part);
      byte |= static_cast<unsigned>(part[0]) << j;
    }
  }
  if constexpr (kWidth < 8) *marks = static_cast<std::uint8_t>(byte);
}

std::uint32_t difference_and_mark_target(std::span<const float> a, std::span<const float> b,
                                         std::span<float> out, float threshold,
                                         std::span<std::uint64_t> marks) {
  constexpr std::size_t kGroup = std::max<std::size_t>(kWidth, 8);
  const Words dw;
  auto largest = hn::Zero(dw);
  auto* bytes = reinterpret_cast<std::uint8_t*>(marks.data());
  const std::size_t whole = out.size() / 64 * 64;
  for (std::size_t i = 0; i < whole; i += kGroup) {
    fetch_ahead(a.data() + i);
    fetch_ahead(b.data() + i);
    mark_difference(a.data() + i, b.data() + i, threshold, out.data() + i, bytes + i / 8, largest);
  }
  const std::uint32_t most = hn::GetLane(hn::MaxOfLanes(dw, largest));
  if (whole == out.size()) return most;
  const float tail = plain::difference_and_mark(
      a.subspan(whole), b.subspan(whole), out.subspan(whole), threshold, marks.subspan(whole / 64));
  return std::max(most, std::bit_cast<std::uint32_t>(tail));
}

void feed_target(std::span<float> residual, std::span<const float> increment, float decay) {
  const bool adds = !increment.empty();
  const bool decays = decay != 1.0F;
  float* values = residual.data();
  const float* added = increment.data();
  if (adds && decays) return feed_loop<true, true>(values, added, decay, residual.size());
  if (adds) return feed_loop<true, false>(values, added, decay, residual.size());
  if (decays) return feed_loop<false, true>(values, added, decay, residual.size());
}

void feed_and_mark_target(std::span<float> residual, std::span<const float> increment, float decay,
                          float threshold, std::span<std::uint64_t> marks) {
  const bool adds = !increment.empty();
  const bool decays = decay != 1.0F;
  const auto run = [&](auto loop) { loop(residual, increment, decay, threshold, marks); };
  if (adds && decays) return run(feed_and_mark_loop<true, true>);
  if (adds) return run(feed_and_mark_loop<true, false>);
  if (decays) return run(feed_and_mark_loop<false, true>);
  run(feed_and_mark_loop<false, false>);
}

constexpr std::size_t kFew = 4;

// Both write past the last position: the next word writes over it.
HWY_INLINE void write_few(std::uint64_t word, std::size_t base, std::uint16_t* next) {
  // With a bit that is always there, the compiler makes no branch of words that run out of bits.
  constexpr std::uint64_t kLast = std::uint64_t{1} << 63U;
  for (std::size_t i = 0; i < kFew; ++i) {
    next[i] =
        static_cast<std::uint16_t>(base + static_cast<std::size_t>(std::countr_zero(word | kLast)));
    word &= word - 1;
  }
}

// A byte at a time from a table: no branch depends on the bits.
HWY_INLINE void write_many(std::uint64_t word, std::size_t base, std::uint16_t* next) {
#if HWY_TARGET == HWY_SCALAR
  for (; word != 0; word &= word - 1) {
    *next++ = static_cast<std::uint16_t>(base + static_cast<std::size_t>(std::countr_zero(word)));
  }
#else
  const hn::FixedTag<std::uint16_t, 8> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  for (std::size_t i = 0; i < 8; ++i, word >>= 8) {
    const auto start = hn::Set(d16, static_cast<std::uint16_t>(base + 8 * i));
    hn::StoreU(hn::Add(hn::PromoteTo(d16, hn::LoadU(d8, kBitsOfByte[word & 0xFF].data())), start),
               d16, next);
    next += kCountOfByte[word & 0xFF];
  }
#endif
}

HWY_INLINE std::uint16_t* set_bits_of_word(std::uint64_t word, std::size_t base,
                                           std::uint16_t* next) {
  // Always, as whether there are any is anybody's guess; more than a few are rare, or the rule.
  const auto count = static_cast<std::size_t>(std::popcount(word));
  write_few(word, base, next);
  if (count > kFew) write_many(word, base, next);
  return next + count;
}

std::size_t set_bits_target(std::span<const std::byte> bits, std::span<std::uint16_t> positions) {
  std::uint16_t* next = positions.data();
  std::uint64_t word = 0;
  std::size_t i = 0;
  for (; i + 8 <= bits.size(); i += 8) {
    std::memcpy(&word, bits.data() + i, 8);
    next = set_bits_of_word(word, 8 * i, next);
  }
  word = 0;
  if (i < bits.size()) std::memcpy(&word, bits.data() + i, bits.size() - i);
  next = set_bits_of_word(word, 8 * i, next);
  return static_cast<std::size_t>(next - positions.data());
}

std::size_t count_at_least_target(std::span<const float> values, float threshold) {
  const Floats d;
  const Ints di;
  const auto limit = hn::Set(d, threshold);
  auto total = hn::Zero(di);  // a true mask is -1 in every lane
  std::size_t tail = 0;
  sweep<kWidth>(
      values.size(),
      [&](std::size_t i) HWY_ATTR {
        const auto hit = hn::Ge(hn::Abs(hn::LoadU(d, values.data() + i)), limit);
        total = hn::Sub(total, hn::BitCast(di, hn::VecFromMask(d, hit)));
      },
      [&](std::size_t i) { tail += std::bit_cast<float>(magnitude_bits(values[i])) >= threshold; });
  return tail + static_cast<std::size_t>(hn::GetLane(hn::SumOfLanes(di, total)));
}

// As integers, NaNs are the largest magnitudes of all.
std::uint32_t largest_magnitude_target(std::span<const float> values) {
  const Floats d;
  const Words dw;
  auto largest = hn::Zero(dw);
  std::uint32_t tail = 0;
  sweep<kWidth>(
      values.size(),
      [&](std::size_t i) HWY_ATTR {
        fetch_ahead(values.data() + i);
        const auto bits = hn::BitCast(dw, hn::LoadU(d, values.data() + i));
        largest = hn::Max(largest, hn::And(bits, hn::Set(dw, kMagnitudeMask)));
      },
      [&](std::size_t i) { tail = std::max(tail, magnitude_bits(values[i])); });
  return std::max(tail, hn::GetLane(hn::MaxOfLanes(dw, largest)));
}

std::size_t first_non_finite_target(std::span<const float> values) {
  const Floats d;
  const Words dw;
  constexpr std::size_t kBlock = 4 * kLanes;
  const std::size_t whole = values.size() / kBlock * kBlock;
  std::size_t i = 0;
  for (; i < whole; i += kBlock) {
    auto worst = hn::Zero(dw);
    for (std::size_t j = 0; j < kBlock; j += kWidth) {
      const auto bits = hn::BitCast(dw, hn::LoadU(d, values.data() + i + j));
      worst = hn::Max(worst, hn::And(bits, hn::Set(dw, kMagnitudeMask)));
    }
    if (!hn::AllFalse(dw, hn::Gt(worst, hn::Set(dw, kInfinityBits - 1U)))) break;
  }
  return i + plain::first_non_finite(values.subspan(i));
}

}  // namespace
}  // namespace longhaul::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longhaul::kernels {

HWY_EXPORT(feed_target);
HWY_EXPORT(feed_and_mark_target);
HWY_EXPORT(difference_and_mark_target);
HWY_EXPORT(set_bits_target);
HWY_EXPORT(count_at_least_target);
HWY_EXPORT(largest_magnitude_target);
HWY_EXPORT(first_non_finite_target);

void feed(std::span<float> residual, std::span<const float> increment, float decay) {
  if (!increment.empty()) LONGHAUL_CHECK_EQ(increment.size(), residual.size());
  HWY_DYNAMIC_DISPATCH(feed_target)(residual, increment, decay);
}

void feed_and_mark(std::span<float> residual, std::span<const float> increment, float decay,
                   float threshold, std::span<std::uint64_t> marks) {
  if (!increment.empty()) LONGHAUL_CHECK_EQ(increment.size(), residual.size());
  LONGHAUL_CHECK_GE(marks.size(), mark_words(residual.size()));
  HWY_DYNAMIC_DISPATCH(feed_and_mark_target)(residual, increment, decay, threshold, marks);
}

void mark(std::span<const float> values, float threshold, std::span<std::uint64_t> marks) {
  LONGHAUL_CHECK_GE(marks.size(), mark_words(values.size()));
  // Without increment and decay the loop only reads.
  const std::span unchanged(const_cast<float*>(values.data()), values.size());
  HWY_DYNAMIC_DISPATCH(feed_and_mark_target)(unchanged, {}, 1.0F, threshold, marks);
}

float difference_and_mark(std::span<const float> a, std::span<const float> b, std::span<float> out,
                          float threshold, std::span<std::uint64_t> marks) {
  LONGHAUL_CHECK(a.size() == out.size() && b.size() == out.size());
  LONGHAUL_CHECK_GE(marks.size(), mark_words(out.size()));
  const std::uint32_t bits =
      HWY_DYNAMIC_DISPATCH(difference_and_mark_target)(a, b, out, threshold, marks);
  return std::bit_cast<float>(std::min(bits, kInfinityBits));
}

std::size_t set_bits(std::span<const std::byte> bits, std::span<std::uint16_t> positions) {
  return HWY_DYNAMIC_DISPATCH(set_bits_target)(bits, positions);
}

// Lanes of 32 bits count.
std::size_t count_at_least(std::span<const float> values, float threshold) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;
  std::size_t count = 0;
  for (; values.size() > kMost; values = values.subspan(kMost))
    count += HWY_DYNAMIC_DISPATCH(count_at_least_target)(values.first(kMost), threshold);
  return count + HWY_DYNAMIC_DISPATCH(count_at_least_target)(values, threshold);
}

float largest_magnitude(std::span<const float> values) {
  const std::uint32_t bits = HWY_DYNAMIC_DISPATCH(largest_magnitude_target)(values);
  return std::bit_cast<float>(std::min(bits, kInfinityBits));
}

std::size_t first_non_finite(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(first_non_finite_target)(values);
}

}  // namespace longhaul::kernels
#endif  // HWY_ONCE
