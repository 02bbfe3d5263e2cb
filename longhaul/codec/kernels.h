// The inner loops of the codecs, in SIMD through Highway, chosen for the CPU at run time.
// Every kernel gives the same bits on every target: element-wise arithmetic has no fused
// multiply-add, and sums run in kLanes fixed partial sums. kernels_plain.h says what each one
// means.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace longhaul::kernels {

// Element i of a sum goes to partial sum i % kLanes, whatever the width of the vectors.
inline constexpr std::size_t kLanes = 16;

// Words of 64 marks that `elements` elements need; bit i % 64 of word i / 64 belongs to element i.
constexpr std::size_t mark_words(std::size_t elements) { return (elements + 63) / 64; }

// residual = decay·residual + increment. An empty increment adds nothing.
void feed(std::span<float> residual, std::span<const float> increment, float decay = 1.0F);

// Feeds, and marks the elements with |residual| >= threshold. Marks beyond the end are zero.
void feed_and_mark(std::span<float> residual, std::span<const float> increment, float decay,
                   float threshold, std::span<std::uint64_t> marks);

// Marks without changing anything.
void mark(std::span<const float> values, float threshold, std::span<std::uint64_t> marks);

// out = a - b, marked; returns its largest magnitude, infinity if there is a NaN.
float difference_and_mark(std::span<const float> a, std::span<const float> b, std::span<float> out,
                          float threshold, std::span<std::uint64_t> marks);

// The ascending positions of the set bits of a bit string, modulo 2^16; bit 0 is the lowest of the
// first byte. `positions` has room for all of them and kSetBitsSlack more, whose contents are then
// undefined. Returns how many.
inline constexpr std::size_t kSetBitsSlack = 8;
std::size_t set_bits(std::span<const std::byte> bits, std::span<std::uint16_t> positions);

std::size_t count_at_least(std::span<const float> values, float threshold);

// The smallest and the largest magnitude; 0 and 0 if there are no values.
std::ranges::minmax_result<float> magnitude_range(std::span<const float> values);

// The largest magnitude; infinity if there is a NaN.
float largest_magnitude(std::span<const float> values);

float sum_of_magnitudes(std::span<const float> values);

// The part of sum_of_magnitudes that lies above `cut`, and how many elements that is.
struct Tail {
  float sum = 0.0F;
  std::size_t count = 0;
};
Tail tail_of_magnitudes(std::span<const float> values, float cut);

float dot(std::span<const float> a, std::span<const float> b);

// out += weight·in
void add_scaled(std::span<const float> in, float weight, std::span<float> out);

// Copies past the caches, for results that are larger than them: memory is written, but not read
// first.
void stream(std::span<const float> in, std::span<float> out);

// out = a - b
void difference(std::span<const float> a, std::span<const float> b, std::span<float> out);

// values -= other
void subtract(std::span<const float> other, std::span<float> values);

// Sign-magnitude codes on a linear grid: magnitude lo + step·level, sign in bit `magnitude_bits`.
struct Grid {
  float lo = 0.0F;
  float step = 0.0F;
  float levels_per_unit = 0.0F;  // 1 / step, or 0 where the grid is one point
  unsigned magnitude_bits = 7;
};
void quantise(std::span<const float> values, const Grid& grid, std::span<std::uint8_t> codes);
void dequantise(std::span<const std::uint8_t> codes, const Grid& grid, std::span<float> values);

// bf16 rounds to nearest even and saturates: a finite number never becomes infinite.
void to_bf16(std::span<const float> values, std::span<std::uint16_t> out);
void from_bf16(std::span<const std::uint16_t> in, std::span<float> values);

// Position of the first NaN or infinity, values.size() if there is none.
std::size_t first_non_finite(std::span<const float> values);

}  // namespace longhaul::kernels
