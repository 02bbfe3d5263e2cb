#include "trainer/random.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "longhaul/base/check.h"

namespace longhaul::trainer {
namespace {

std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t mixed = (state += 0x9E3779B97F4A7C15U);
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace

Random::Random(std::uint64_t seed, Draws draws, std::uint64_t index) {
  // Mixed after each part: seed 1 of replica 2 is not seed 2 of replica 1.
  std::uint64_t mixed = seed;
  mixed = splitmix(mixed) ^ static_cast<std::uint64_t>(draws);
  mixed = splitmix(mixed) ^ index;
  for (std::uint64_t& word : state_) word = splitmix(mixed);
}

std::uint64_t Random::bits() {
  const std::uint64_t drawn = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return drawn;
}

std::uint64_t Random::below(std::uint64_t bound) {
  LONGHAUL_CHECK_GT(bound, 0U);
  const std::uint64_t rest = (std::numeric_limits<std::uint64_t>::max() % bound + 1) % bound;
  std::uint64_t drawn = bits();
  while (drawn < rest) drawn = bits();
  return drawn % bound;
}

double Random::uniform() { return static_cast<double>(bits() >> 11U) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double Random::gamma(double shape) {
  LONGHAUL_CHECK_GT(shape, 0);
  if (shape < 1) {
    const double larger = gamma(shape + 1);
    return larger * std::pow(1 - uniform(), 1 / shape);
  }
  const double centre = shape - 1.0 / 3;
  const double width = 1 / std::sqrt(9 * centre);
  while (true) {
    const double deviate = normal();
    const double root = 1 + width * deviate;
    if (root <= 0) continue;
    const double cube = root * root * root;
    const double bound = 0.5 * deviate * deviate + centre * (1 - cube + std::log(cube));
    if (std::log(1 - uniform()) < bound) return centre * cube;
  }
}

}  // namespace longhaul::trainer
