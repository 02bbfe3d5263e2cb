// Finding the k largest magnitudes by counting: exact, equal magnitudes resolved by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "longhaul/base/scratch.h"

namespace longhaul {

// Magnitudes are compared as the integers that their bits are: the same order, denormals included.
// Zeros are never selected: sending them would tell nobody anything.

// Magnitude bits above which k to k + slack elements are candidates, themselves included. Where
// equal magnitudes make that impossible: the largest ones with at least k. With fewer than k
// non-zero elements: all of them. `count` counts candidates, `hint` is where to look first.
std::uint32_t find_cut(const std::function<std::size_t(float threshold)>& count, std::size_t k,
                       std::size_t slack, std::uint32_t hint);

// The k-th largest of `bits` (1 <= k <= bits.size()); may reorder them.
std::uint32_t kth_largest(std::span<std::uint32_t> bits, std::size_t k);

// Which candidates are among the k largest: all above `bits`, and the first `ties` equal to it.
struct Cut {
  std::uint32_t bits = 0;
  std::size_t ties = 0;

  // Asked of all candidates in ascending order of position: uses up ties.
  bool keeps(std::uint32_t candidate) {
    const bool tied = candidate == bits && ties > 0;
    ties -= tied;
    return candidate > bits || tied;
  }
};
// `candidates` are magnitude bits, more than k of them; may reorder them.
Cut exact_cut(std::span<std::uint32_t> candidates, std::size_t k);

// Appends the ascending positions of the k largest magnitudes of `values` (at most a tile) and
// returns the smallest one's bits, a good hint for the next call.
std::uint32_t select_top(std::span<const float> values, std::size_t k, std::uint32_t hint,
                         Scratch<std::uint16_t>& positions);

// Appends the ascending positions of the set marks (at most a tile of them) and returns how many.
std::size_t append_marked(std::span<const std::uint64_t> marks, Scratch<std::uint16_t>& positions);

}  // namespace longhaul
