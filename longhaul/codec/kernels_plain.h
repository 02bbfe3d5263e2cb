// The kernels of kernels.h in plain C++: their meaning, their tails, and what tests compare with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "longhaul/codec/kernels.h"

namespace longhaul::kernels::plain {

void feed(std::span<float> residual, std::span<const float> increment, float decay);
void feed_and_mark(std::span<float> residual, std::span<const float> increment, float decay,
                   float threshold, std::span<std::uint64_t> marks);
float difference_and_mark(std::span<const float> a, std::span<const float> b, std::span<float> out,
                          float threshold, std::span<std::uint64_t> marks);
std::size_t set_bits(std::span<const std::byte> bits, std::span<std::uint16_t> positions);
std::size_t count_at_least(std::span<const float> values, float threshold);
std::ranges::minmax_result<float> magnitude_range(std::span<const float> values);
float largest_magnitude(std::span<const float> values);
float sum_of_magnitudes(std::span<const float> values);
Tail tail_of_magnitudes(std::span<const float> values, float cut);
float dot(std::span<const float> a, std::span<const float> b);
void add_scaled(std::span<const float> in, float weight, std::span<float> out);
void stream(std::span<const float> in, std::span<float> out);
void difference(std::span<const float> a, std::span<const float> b, std::span<float> out);
void subtract(std::span<const float> other, std::span<float> values);
void quantise(std::span<const float> values, const Grid& grid, std::span<std::uint8_t> codes);
void dequantise(std::span<const std::uint8_t> codes, const Grid& grid, std::span<float> values);
void to_bf16(std::span<const float> values, std::span<std::uint16_t> out);
void from_bf16(std::span<const std::uint16_t> in, std::span<float> values);
std::size_t first_non_finite(std::span<const float> values);

// Adds the partial sums pairwise: 8 apart, then 4, 2, 1.
float fold_lanes(std::array<float, kLanes> lanes);

}  // namespace longhaul::kernels::plain
