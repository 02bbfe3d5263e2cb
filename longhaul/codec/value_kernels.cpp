#include "longhaul/codec/kernels.h"

#include <algorithm>
#include <array>
#include <bit>

#include "hwy/cache_control.h"
#include "longhaul/base/check.h"
#include "longhaul/codec/bf16.h"
#include "longhaul/codec/kernels_plain.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "longhaul/codec/value_kernels.cpp"
#include "hwy/foreach_target.h"  // includes this file once per target
#include "longhaul/codec/kernels_target.h"

HWY_BEFORE_NAMESPACE();
namespace longhaul::kernels::HWY_NAMESPACE {
namespace {

std::ranges::minmax_result<float> magnitude_range_target(std::span<const float> values) {
  if (values.size() < kWidth) return plain::magnitude_range(values);
  const Floats d;
  auto low = hn::Abs(hn::LoadU(d, values.data()));
  auto high = low;
  const auto visit = [&](std::size_t i) HWY_ATTR {
    const auto v = hn::Abs(hn::LoadU(d, values.data() + i));
    low = hn::Min(low, v);
    high = hn::Max(high, v);
  };
  for (std::size_t i = 0; i + kWidth <= values.size(); i += kWidth) visit(i);
  visit(values.size() - kWidth);  // the last vector may overlap: minimum and maximum do not mind
  return {.min = hn::GetLane(hn::MinOfLanes(d, low)), .max = hn::GetLane(hn::MaxOfLanes(d, high))};
}

// Sums term(i) for full vectors and tail_term(i) for the rest into kLanes partial sums.
template <typename Term, typename TailTerm>
HWY_INLINE float lane_sum(std::size_t count, const Term& term, const TailTerm& tail_term) {
  const Floats d;
  HWY_ALIGN std::array<float, kLanes> lanes{};
  const std::size_t whole = count / kLanes * kLanes;
  constexpr std::size_t kBlock = 256 * kLanes;  // stays in L1 while its parts are summed in turn
  for (std::size_t block = 0; block < whole; block += kBlock) {
    const std::size_t end = std::min(whole, block + kBlock);
    for (std::size_t part = 0; part < kLanes; part += kWidth) {
      auto sum = hn::LoadU(d, lanes.data() + part);
      for (std::size_t i = block + part; i < end; i += kLanes) sum = hn::Add(sum, term(i));
      hn::StoreU(sum, d, lanes.data() + part);
    }
  }
  for (std::size_t i = whole; i < count; ++i) lanes[i % kLanes] += tail_term(i);
  return plain::fold_lanes(lanes);
}

float sum_of_magnitudes_target(std::span<const float> values) {
  const Floats d;
  return lane_sum(
      values.size(),
      [&](std::size_t i) HWY_ATTR { return hn::Abs(hn::LoadU(d, values.data() + i)); },
      [&](std::size_t i) { return std::bit_cast<float>(magnitude_bits(values[i])); });
}

Tail tail_of_magnitudes_target(std::span<const float> values, float cut) {
  const Floats d;
  const auto limit = hn::Set(d, cut);
  Tail tail;
  tail.sum = lane_sum(
      values.size(),
      [&](std::size_t i) HWY_ATTR {
        const auto v = hn::Abs(hn::LoadU(d, values.data() + i));
        const auto above = hn::Gt(v, limit);
        tail.count += hn::CountTrue(d, above);
        return hn::IfThenElseZero(above, v);
      },
      [&](std::size_t i) {
        const auto v = std::bit_cast<float>(magnitude_bits(values[i]));
        tail.count += v > cut;
        return v > cut ? v : 0.0F;
      });
  return tail;
}

float dot_target(std::span<const float> a, std::span<const float> b) {
  const Floats d;
  return lane_sum(
      a.size(),
      [&](std::size_t i)
          HWY_ATTR { return hn::Mul(hn::LoadU(d, a.data() + i), hn::LoadU(d, b.data() + i)); },
      [&](std::size_t i) { return a[i] * b[i]; });
}

void add_scaled_target(std::span<const float> in, float weight, std::span<float> out) {
  const Floats d;
  const auto w = hn::Set(d, weight);
  sweep<kWidth>(
      out.size(),
      [&](std::size_t i) HWY_ATTR {
        const auto sum =
            hn::Add(hn::LoadU(d, out.data() + i), hn::Mul(w, hn::LoadU(d, in.data() + i)));
        hn::StoreU(sum, d, out.data() + i);
      },
      [&](std::size_t i) { out[i] += weight * in[i]; });
}

void stream_target(std::span<const float> in, std::span<float> out) {
  const Floats d;
  const std::size_t misaligned =
      reinterpret_cast<std::uintptr_t>(out.data()) % sizeof(hn::Vec<Floats>) / sizeof(float);
  const std::size_t head = std::min(out.size(), misaligned == 0 ? 0 : kWidth - misaligned);
  plain::stream(in.first(head), out.first(head));
  const std::size_t whole = (out.size() - head) / kWidth * kWidth;
  for (std::size_t i = head; i < head + whole; i += kWidth)
    hn::Stream(hn::LoadU(d, in.data() + i), d, out.data() + i);
  hwy::FlushStream();
  plain::stream(in.subspan(head + whole), out.subspan(head + whole));
}

void difference_target(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  const Floats d;
  sweep<kWidth>(
      out.size(),
      [&](std::size_t i) HWY_ATTR {
        hn::StoreU(hn::Sub(hn::LoadU(d, a.data() + i), hn::LoadU(d, b.data() + i)), d,
                   out.data() + i);
      },
      [&](std::size_t i) { out[i] = a[i] - b[i]; });
}

void quantise_target(std::span<const float> values, const Grid& grid,
                     std::span<std::uint8_t> codes) {
  const Floats d;
  const Ints di;
  const Words dw;
  const hn::Rebind<std::uint8_t, Floats> db;
  const auto lo = hn::Set(d, grid.lo);
  const auto scale = hn::Set(d, grid.levels_per_unit);
  const auto top = hn::Set(d, static_cast<float>((1U << grid.magnitude_bits) - 1U));
  const int sign_shift = static_cast<int>(31U - grid.magnitude_bits);
  const std::size_t whole = values.size() / kWidth * kWidth;
  for (std::size_t i = 0; i < whole; i += kWidth) {
    const auto v = hn::LoadU(d, values.data() + i);
    const auto offset = hn::Mul(hn::Sub(hn::Abs(v), lo), scale);
    const auto level = hn::NearestInt(hn::Min(hn::Max(offset, hn::Zero(d)), top));
    const auto sign = hn::And(hn::BitCast(dw, v), hn::Set(dw, 0x80000000U));
    const auto code = hn::Or(hn::BitCast(di, hn::ShiftRightSame(sign, sign_shift)), level);
    hn::StoreU(hn::DemoteTo(db, code), db, codes.data() + i);
  }
  plain::quantise(values.subspan(whole), grid, codes.subspan(whole));
}

void dequantise_target(std::span<const std::uint8_t> codes, const Grid& grid,
                       std::span<float> values) {
  const Floats d;
  const Ints di;
  const Words dw;
  const hn::Rebind<std::uint8_t, Floats> db;
  const auto lo = hn::Set(d, grid.lo);
  const auto step = hn::Set(d, grid.step);
  const auto level_mask = hn::Set(di, static_cast<std::int32_t>((1U << grid.magnitude_bits) - 1U));
  const int sign_shift = static_cast<int>(31U - grid.magnitude_bits);
  const std::size_t whole = values.size() / kWidth * kWidth;
  for (std::size_t i = 0; i < whole; i += kWidth) {
    const auto code = hn::PromoteTo(di, hn::LoadU(db, codes.data() + i));
    const auto magnitude = hn::Add(lo, hn::Mul(step, hn::ConvertTo(d, hn::And(code, level_mask))));
    const auto sign =
        hn::And(hn::ShiftLeftSame(hn::BitCast(dw, code), sign_shift), hn::Set(dw, 0x80000000U));
    hn::StoreU(hn::Or(magnitude, hn::BitCast(d, sign)), d, values.data() + i);
  }
  plain::dequantise(codes.subspan(whole), grid, values.subspan(whole));
}

void to_bf16_target(std::span<const float> values, std::span<std::uint16_t> out) {
  const Floats d;
  const Words dw;
  const hn::Rebind<std::uint16_t, Floats> dh;
  const std::size_t whole = values.size() / kWidth * kWidth;
  for (std::size_t i = 0; i < whole; i += kWidth) {
    const auto bits = hn::BitCast(dw, hn::LoadU(d, values.data() + i));
    const auto magnitude = hn::And(bits, hn::Set(dw, kMagnitudeMask));
    const auto odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(dw, 1U));
    const auto rounded = hn::ShiftRight<16>(hn::Add(magnitude, hn::Add(odd, hn::Set(dw, 0x7FFFU))));
    const auto finite = hn::Min(rounded, hn::Set(dw, kLargestBf16));
    const auto infinity = hn::Set(dw, kInfinityBits);
    const auto quiet = hn::IfThenElseZero(hn::Gt(magnitude, infinity), hn::Set(dw, 0x40U));
    const auto special = hn::Or(hn::ShiftRight<16>(magnitude), quiet);
    const auto chosen = hn::IfThenElse(hn::Lt(magnitude, infinity), finite, special);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(dw, 0x8000U));
    const hn::RebindToSigned<decltype(dw)> di;
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, hn::Or(chosen, sign))), dh, out.data() + i);
  }
  plain::to_bf16(values.subspan(whole), out.subspan(whole));
}

void from_bf16_target(std::span<const std::uint16_t> in, std::span<float> values) {
  const Floats d;
  const Words dw;
  const hn::Rebind<std::uint16_t, Floats> dh;
  const std::size_t whole = values.size() / kWidth * kWidth;
  for (std::size_t i = 0; i < whole; i += kWidth) {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(dw, hn::LoadU(dh, in.data() + i)));
    hn::StoreU(hn::BitCast(d, bits), d, values.data() + i);
  }
  plain::from_bf16(in.subspan(whole), values.subspan(whole));
}

}  // namespace
}  // namespace longhaul::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longhaul::kernels {

HWY_EXPORT(magnitude_range_target);
HWY_EXPORT(sum_of_magnitudes_target);
HWY_EXPORT(tail_of_magnitudes_target);
HWY_EXPORT(dot_target);
HWY_EXPORT(add_scaled_target);
HWY_EXPORT(stream_target);
HWY_EXPORT(difference_target);
HWY_EXPORT(quantise_target);
HWY_EXPORT(dequantise_target);
HWY_EXPORT(to_bf16_target);
HWY_EXPORT(from_bf16_target);

std::ranges::minmax_result<float> magnitude_range(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(magnitude_range_target)(values);
}

float sum_of_magnitudes(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(sum_of_magnitudes_target)(values);
}

Tail tail_of_magnitudes(std::span<const float> values, float cut) {
  return HWY_DYNAMIC_DISPATCH(tail_of_magnitudes_target)(values, cut);
}

float dot(std::span<const float> a, std::span<const float> b) {
  LONGHAUL_CHECK_EQ(a.size(), b.size());
  return HWY_DYNAMIC_DISPATCH(dot_target)(a, b);
}

void add_scaled(std::span<const float> in, float weight, std::span<float> out) {
  LONGHAUL_CHECK_EQ(in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(add_scaled_target)(in, weight, out);
}

void stream(std::span<const float> in, std::span<float> out) {
  LONGHAUL_CHECK_EQ(in.size(), out.size());
  HWY_DYNAMIC_DISPATCH(stream_target)(in, out);
}

void difference(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  LONGHAUL_CHECK_EQ(a.size(), out.size());
  LONGHAUL_CHECK_EQ(b.size(), out.size());
  HWY_DYNAMIC_DISPATCH(difference_target)(a, b, out);
}

void subtract(std::span<const float> other, std::span<float> values) {
  difference(values, other, values);
}

void quantise(std::span<const float> values, const Grid& grid, std::span<std::uint8_t> codes) {
  LONGHAUL_CHECK_EQ(values.size(), codes.size());
  HWY_DYNAMIC_DISPATCH(quantise_target)(values, grid, codes);
}

void dequantise(std::span<const std::uint8_t> codes, const Grid& grid, std::span<float> values) {
  LONGHAUL_CHECK_EQ(codes.size(), values.size());
  HWY_DYNAMIC_DISPATCH(dequantise_target)(codes, grid, values);
}

void to_bf16(std::span<const float> values, std::span<std::uint16_t> out) {
  LONGHAUL_CHECK_EQ(values.size(), out.size());
  HWY_DYNAMIC_DISPATCH(to_bf16_target)(values, out);
}

void from_bf16(std::span<const std::uint16_t> in, std::span<float> values) {
  LONGHAUL_CHECK_EQ(in.size(), values.size());
  HWY_DYNAMIC_DISPATCH(from_bf16_target)(in, values);
}

}  // namespace longhaul::kernels
#endif  // HWY_ONCE
