// Random layer profiles and links, and the searches that need no idea.
#pragma once

#include <random>
#include <string>

#include "longhaul/plan/layer_timeline.h"
#include "tests/plan/random_conditions.h"

namespace longhaul::testing {

// Layers whose bytes and times differ by up to a hundred times.
inline LayerProfile random_profile(std::mt19937_64& random, std::size_t layers) {
  const auto spread = [&] { return std::pow(10.0, uniform_in(random, -2, 0)); };
  LayerProfile profile;
  for (std::size_t i = 0; i < layers; ++i) {
    const double backward = spread();
    profile.layers.push_back({.name = std::to_string(i),
                              .forward = Seconds(backward * uniform_in(random, 0, 1)),
                              .backward = Seconds(backward),
                              .bytes = spread()});
  }
  return profile;
}

// A link that carries the profile in about as much time as `period` steps compute, more or less.
inline LayerLink random_link(std::mt19937_64& random, const LayerProfile& profile,
                             std::size_t period) {
  const Seconds computing = profile.forward() + profile.backward();
  const double rate = profile.bytes() / (computing.count() * static_cast<double>(period));
  const auto around = [&] {
    return Bandwidth{.bytes_per_second = rate * std::pow(10.0, uniform_in(random, -0.5, 0.7))};
  };
  return {.up = around(),
          .down = around(),
          .latency = random() % 3 == 0 ? Seconds(0) : uniform_in(random, 0, 0.3) * computing,
          .is_one_way = random() % 2 == 0};
}

// The example of docs/layers.md: lines of 1 MB/s, no forward time, H = 2.
inline LayerProfile pinning_profile() {
  LayerProfile profile;
  const double backward[] = {8, 2, 6, 5, 3};
  const double megabytes[] = {8, 8, 8, 7, 5};
  for (std::size_t i = 0; i < 5; ++i)
    profile.layers.push_back({.name = "layer " + std::to_string(5 - i),
                              .backward = Seconds(backward[i]),
                              .bytes = 1e6 * megabytes[i]});
  return profile;
}

inline LayerLink pinning_link(bool is_one_way) {
  const Bandwidth megabyte{.bytes_per_second = 1e6};
  return {.up = megabyte, .down = megabyte, .is_one_way = is_one_way};
}

}  // namespace longhaul::testing
