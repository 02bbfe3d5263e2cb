// Seeded random draws that are the same bits with every standard library; the distributions of
// <random> are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace longhaul::trainer {

// The purpose of a stream of draws. Streams of one seed are independent of each other.
enum class Draws : std::uint64_t {
  kInitialParameters = 1,
  kSplit = 2,
  kBatches = 3,
  kTestOrder = 4,
  kDropout = 5,
};

// Random numbers that are the same on every machine.
// xoshiro256** seeded by splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed, Draws draws, std::uint64_t index = 0);

  std::uint64_t bits();
  std::uint64_t below(std::uint64_t bound);  // 0 … bound - 1, without bias; bound > 0
  double uniform();                          // [0, 1)
  double normal();                           // mean 0, deviation 1
  double gamma(double shape);                // scale 1; shape > 0; may underflow to 0

 private:
  std::uint64_t state_[4] = {};
};

template <typename T>
void shuffle(std::span<T> items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[random.below(left)]);
  }
}

}  // namespace longhaul::trainer
