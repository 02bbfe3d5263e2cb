// Networks to plan for, random ones from home lines to data centres.
#pragma once

#include <cmath>
#include <random>

#include "longhaul/codec/codec.h"
#include "longhaul/plan/conditions.h"
#include "longhaul/plan/round_sizes.h"

namespace longhaul::testing {

inline constexpr CodecOptions kTopBf16{.kind = CodecKind::kTopK, .values = ValueFormat::kBf16};
inline constexpr std::size_t kElements = 1'000'000;

// Four replicas whose steps carry `alpha` dense updates each, and whose round trips last `beta`
// steps.
inline Conditions equal_links(double alpha, double beta) {
  const Bandwidth rate{.bytes_per_second = alpha * 4.0 * kElements / 0.1};
  return Conditions(
      4, {.compute = Seconds(0.1), .latency = Seconds(0.1 * beta / 2), .up = rate, .down = rate});
}

inline RoundSizes sizes_of_four() { return {kTopBf16, kElements, 4}; }

inline double uniform_in(std::mt19937_64& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53;
}

// α from 0.005 to 5 in each direction, β from 0 to 8; every second one has unequal replicas.
inline Conditions random_conditions(std::mt19937_64& random, std::size_t replicas,
                                    double dense_bytes) {
  const double compute = std::pow(10.0, uniform_in(random, -2, 0));
  const double up = std::pow(10.0, uniform_in(random, -2.3, 0.7)) * dense_bytes / compute;
  const double down = std::pow(10.0, uniform_in(random, -2.3, 0.7)) * dense_bytes / compute;
  const double latency = uniform_in(random, 0, 4) * compute;
  const bool is_unequal = random() % 2 == 0;
  const auto spread = [&] { return is_unequal ? uniform_in(random, 0.5, 1.5) : 1.0; };
  Conditions all;
  for (std::size_t i = 0; i < replicas; ++i) {
    all.push_back({.compute = Seconds(compute * spread()),
                   .latency = Seconds(latency * spread()),
                   .up = {.bytes_per_second = up * spread()},
                   .down = {.bytes_per_second = down * spread()}});
  }
  return all;
}

}  // namespace longhaul::testing
