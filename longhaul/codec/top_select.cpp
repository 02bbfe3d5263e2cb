#include "longhaul/codec/top_select.h"

#include <algorithm>
#include <array>
#include <bit>

#include "longhaul/base/check.h"
#include "longhaul/codec/bf16.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile.h"

namespace longhaul {
namespace {

constexpr std::uint32_t kSmallest = 1;  // the smallest magnitude that is not zero
constexpr std::uint32_t kEighthOctave = 1U << 20;

}  // namespace

std::uint32_t find_cut(const std::function<std::size_t(float threshold)>& count, std::size_t k,
                       std::size_t slack, std::uint32_t hint) {
  const auto count_from = [&](std::uint32_t bits) { return count(std::bit_cast<float>(bits)); };
  // Invariant: at least k candidates at `low` (once seen), fewer than k at `high`.
  std::uint32_t low = 0;
  std::uint32_t high = kInfinityBits;
  std::uint32_t probe = std::clamp(hint, kSmallest, kInfinityBits - 1);
  std::uint32_t stride = kEighthOctave;
  while (true) {
    const std::size_t here = count_from(probe);
    if (here >= k && here <= k + slack) return probe;
    if (here >= k) {
      low = probe;
    } else {
      high = probe;
      if (probe == kSmallest) return kSmallest;
    }
    if (low != 0 && high - low == 1) return low;
    const bool bracketed = low != 0 && high != kInfinityBits;
    if (bracketed) {
      probe = low + (high - low) / 2;
    } else if (low == 0) {
      probe = high > kSmallest + stride ? high - stride : kSmallest;
    } else {
      probe = kInfinityBits - low > stride ? low + stride : low + (high - low) / 2;
    }
    stride *= stride < (1U << 28) ? 2 : 1;
  }
}

std::uint32_t kth_largest(std::span<std::uint32_t> bits, std::size_t k) {
  LONGHAUL_CHECK(k >= 1 && k <= bits.size());
  if (bits.size() <= 512) {
    const auto kth = bits.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(bits.begin(), kth, bits.end(), std::greater<>());
    return *kth;
  }
  // One histogram over the range leaves a bin of few to sort out: several times faster than
  // nth_element on all.
  constexpr std::size_t kBins = 2048;
  const auto range = std::ranges::minmax(bits);
  const std::uint32_t min =
      range.min;  // a name of its own: clang 14 does not capture structured bindings
  const int shift = std::max(0, static_cast<int>(std::bit_width(range.max - min)) -
                                    static_cast<int>(std::bit_width(kBins - 1)));
  std::array<std::uint32_t, kBins> bins{};
  for (const std::uint32_t b : bits) ++bins[(b - min) >> shift];
  std::size_t above = 0;
  std::size_t bin = kBins - 1;
  while (above + bins[bin] < k) above += bins[bin--];
  const auto in_bin = [&](std::uint32_t b) { return (b - min) >> shift == bin; };
  const auto end = std::partition(bits.begin(), bits.end(), in_bin);
  const auto inside = bits.first(static_cast<std::size_t>(end - bits.begin()));
  if (shift == 0) return inside.front();
  return kth_largest(inside, k - above);
}

Cut exact_cut(std::span<std::uint32_t> candidates, std::size_t k) {
  const std::uint32_t cut = kth_largest(candidates, k);
  const auto above =
      std::ranges::count_if(candidates, [=](std::uint32_t bits) { return bits > cut; });
  return {.bits = cut, .ties = k - static_cast<std::size_t>(above)};
}

std::size_t append_marked(std::span<const std::uint64_t> marks, Scratch<std::uint16_t>& positions) {
  const std::size_t before = positions.size();
  positions.resize(before + 64 * marks.size() + kernels::kSetBitsSlack);
  const std::size_t count =
      kernels::set_bits(std::as_bytes(marks), std::span(positions).subspan(before));
  positions.resize(before + count);
  return count;
}

std::uint32_t select_top(std::span<const float> values, std::size_t k, std::uint32_t hint,
                         Scratch<std::uint16_t>& positions) {
  LONGHAUL_CHECK_LE(values.size(), kTileElements);
  const std::uint32_t cut =
      find_cut([&](float threshold) { return kernels::count_at_least(values, threshold); }, k,
               8 + k / 4, hint);
  std::array<std::uint64_t, kernels::mark_words(kTileElements)> storage;
  const std::span marks = std::span(storage).first(kernels::mark_words(values.size()));
  kernels::mark(values, std::bit_cast<float>(cut), marks);
  const std::size_t before = positions.size();
  if (append_marked(marks, positions) <= k) return cut;
  const std::span candidates = std::span(positions).subspan(before);
  Scratch<std::uint32_t> bits(candidates.size());
  std::ranges::transform(candidates, bits.begin(),
                         [&](std::uint16_t i) { return magnitude_bits(values[i]); });
  Cut exact = exact_cut(bits, k);
  const auto falls_below = [&](std::uint16_t i) { return !exact.keeps(magnitude_bits(values[i])); };
  positions.erase(std::remove_if(positions.begin() + static_cast<std::ptrdiff_t>(before),
                                 positions.end(), falls_below),
                  positions.end());
  return exact.bits;
}

}  // namespace longhaul
