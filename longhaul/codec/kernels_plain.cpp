#include "longhaul/codec/kernels_plain.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "longhaul/codec/bf16.h"

namespace longhaul::kernels::plain {
namespace {

float magnitude(float value) { return std::bit_cast<float>(magnitude_bits(value)); }

template <typename Term>
float lane_sum(std::size_t count, const Term& term) {
  std::array<float, kLanes> lanes{};
  for (std::size_t i = 0; i < count; ++i) lanes[i % kLanes] += term(i);
  return fold_lanes(lanes);
}

}  // namespace

float fold_lanes(std::array<float, kLanes> lanes) {
  for (std::size_t apart = kLanes / 2; apart > 0; apart /= 2) {
    for (std::size_t i = 0; i < apart; ++i) lanes[i] += lanes[i + apart];
  }
  return lanes[0];
}

void feed(std::span<float> residual, std::span<const float> increment, float decay) {
  if (decay == 1.0F && increment.empty()) return;
  for (std::size_t i = 0; i < residual.size(); ++i) {
    if (decay != 1.0F) residual[i] *= decay;
    if (!increment.empty()) residual[i] += increment[i];
  }
}

void feed_and_mark(std::span<float> residual, std::span<const float> increment, float decay,
                   float threshold, std::span<std::uint64_t> marks) {
  plain::feed(residual, increment, decay);
  std::fill_n(marks.begin(), mark_words(residual.size()), 0U);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    marks[i / 64] |= std::uint64_t{magnitude(residual[i]) >= threshold} << (i % 64);
  }
}

float difference_and_mark(std::span<const float> a, std::span<const float> b, std::span<float> out,
                          float threshold, std::span<std::uint64_t> marks) {
  plain::difference(a, b, out);
  plain::feed_and_mark(out, {}, 1.0F, threshold, marks);
  return plain::largest_magnitude(out);
}

std::size_t set_bits(std::span<const std::byte> bits, std::span<std::uint16_t> positions) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < 8 * bits.size(); ++i) {
    const bool is_set = (bits[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
    if (is_set) positions[count++] = static_cast<std::uint16_t>(i);
  }
  return count;
}

std::size_t count_at_least(std::span<const float> values, float threshold) {
  return static_cast<std::size_t>(
      std::ranges::count_if(values, [=](float v) { return magnitude(v) >= threshold; }));
}

float largest_magnitude(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  return std::bit_cast<float>(std::min(largest, kInfinityBits));
}

std::ranges::minmax_result<float> magnitude_range(std::span<const float> values) {
  if (values.empty()) return {.min = 0.0F, .max = 0.0F};
  float least = magnitude(values[0]);
  float most = least;
  for (const float v : values) {
    least = std::min(least, magnitude(v));
    most = std::max(most, magnitude(v));
  }
  return {.min = least, .max = most};
}

float sum_of_magnitudes(std::span<const float> values) {
  return lane_sum(values.size(), [&](std::size_t i) { return magnitude(values[i]); });
}

Tail tail_of_magnitudes(std::span<const float> values, float cut) {
  Tail tail;
  tail.sum = lane_sum(values.size(), [&](std::size_t i) {
    const bool above = magnitude(values[i]) > cut;
    tail.count += above;
    return above ? magnitude(values[i]) : 0.0F;
  });
  return tail;
}

float dot(std::span<const float> a, std::span<const float> b) {
  return lane_sum(a.size(), [&](std::size_t i) { return a[i] * b[i]; });
}

void add_scaled(std::span<const float> in, float weight, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * in[i];
}

void stream(std::span<const float> in, std::span<float> out) { std::ranges::copy(in, out.begin()); }

void difference(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] - b[i];
}

void subtract(std::span<const float> other, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= other[i];
}

void quantise(std::span<const float> values, const Grid& grid, std::span<std::uint8_t> codes) {
  const auto top = static_cast<float>((1U << grid.magnitude_bits) - 1U);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float offset = (magnitude(values[i]) - grid.lo) * grid.levels_per_unit;
    const float level = std::nearbyint(std::min(std::max(offset, 0.0F), top));
    const unsigned sign = std::signbit(values[i]) ? 1U << grid.magnitude_bits : 0U;
    codes[i] = static_cast<std::uint8_t>(sign | static_cast<unsigned>(level));
  }
}

void dequantise(std::span<const std::uint8_t> codes, const Grid& grid, std::span<float> values) {
  const unsigned level_mask = (1U << grid.magnitude_bits) - 1U;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float size = grid.lo + grid.step * static_cast<float>(codes[i] & level_mask);
    values[i] = (codes[i] >> grid.magnitude_bits) & 1U ? -size : size;
  }
}

void to_bf16(std::span<const float> values, std::span<std::uint16_t> out) {
  std::ranges::transform(values, out.begin(), bf16_from_float);
}

void from_bf16(std::span<const std::uint16_t> in, std::span<float> values) {
  std::ranges::transform(in, values.begin(), float_from_bf16);
}

std::size_t first_non_finite(std::span<const float> values) {
  const auto bad =
      std::ranges::find_if(values, [](float v) { return magnitude_bits(v) >= kInfinityBits; });
  return static_cast<std::size_t>(bad - values.begin());
}

}  // namespace longhaul::kernels::plain
