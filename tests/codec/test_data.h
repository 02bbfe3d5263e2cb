// Updates to encode in tests: seeded, cheap to make, and of every shape that has ever hurt a codec.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace longhaul::testing_data {

enum class Content {
  kNormal,
  kHeavyTailed,
  kZeros,
  kAllEqual,
  kDenormals,
  kHuge,  // sums of a few overflow, sums of two do not
  kMostlyZeros,
  kAlternatingSign,
  kSingleSpike,
};

inline constexpr Content kAllContents[] = {
    Content::kNormal,      Content::kHeavyTailed,     Content::kZeros,
    Content::kAllEqual,    Content::kDenormals,       Content::kHuge,
    Content::kMostlyZeros, Content::kAlternatingSign, Content::kSingleSpike,
};

inline constexpr std::size_t kSizes[] = {0,   1,    2,    63,    64,    65,    511,
                                         513, 4095, 4097, 65535, 65536, 65537, 200'003};

inline std::string_view name_of(Content content) {
  switch (content) {
    case Content::kNormal:
      return "Normal";
    case Content::kHeavyTailed:
      return "HeavyTailed";
    case Content::kZeros:
      return "Zeros";
    case Content::kAllEqual:
      return "AllEqual";
    case Content::kDenormals:
      return "Denormals";
    case Content::kHuge:
      return "Huge";
    case Content::kMostlyZeros:
      return "MostlyZeros";
    case Content::kAlternatingSign:
      return "AlternatingSign";
    case Content::kSingleSpike:
      return "SingleSpike";
  }
  return "Unknown";
}

// Close to normal with deviation 1: the sum of four uniform numbers, one draw of 64 bits for each
// value.
inline float near_normal(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  double sum = 0.0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xFFFF);
  return static_cast<float>((sum / 65536.0 - 2.0) * 1.7320508);
}

inline float draw(Content content, std::size_t position, std::mt19937_64& random) {
  switch (content) {
    case Content::kNormal:
      return 0.01F * near_normal(random);
    case Content::kHeavyTailed:
      return 1e-4F * near_normal(random) / (0.001F + std::abs(near_normal(random)));
    case Content::kZeros:
      return 0.0F;
    case Content::kAllEqual:
      return 0.37F;
    case Content::kDenormals:
      return std::copysign(std::bit_cast<float>(static_cast<std::uint32_t>(random() >> 42)),
                           near_normal(random));
    case Content::kHuge:
      return 0.49F * FLT_MAX * (near_normal(random) / 3.5F);
    case Content::kMostlyZeros:
      return random() % 1024 == 0 ? near_normal(random) : 0.0F;
    case Content::kAlternatingSign:
      return position % 2 == 0 ? 0.5F : -0.5F;
    case Content::kSingleSpike:
      return 0.0F;
  }
  return 0.0F;
}

inline std::vector<float> make_update(Content content, std::size_t elements, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> update(elements);
  for (std::size_t i = 0; i < elements; ++i) update[i] = draw(content, i, random);
  if (content == Content::kSingleSpike && elements > 0) update[random() % elements] = -1e6F;
  return update;
}

inline std::vector<float> normal_update(std::size_t elements, std::uint64_t seed) {
  return make_update(Content::kNormal, elements, seed);
}

// Values of all scales with special ones strewn in.
inline std::vector<float> mixed_update(std::size_t elements, std::uint64_t seed) {
  constexpr float kSpecial[] = {0.0F,         -0.0F,         FLT_MAX,       -FLT_MAX, FLT_MIN,
                                FLT_TRUE_MIN, -FLT_TRUE_MIN, 1.0F,          -1.0F,    0.5F,
                                1.5F,         2.5F,          3.3895314e38F, 1e-40F};
  std::mt19937_64 random(seed);
  std::vector<float> values(elements);
  for (float& v : values) {
    v = random() % 4 == 0
            ? kSpecial[random() % std::size(kSpecial)]
            : near_normal(random) * std::exp2(static_cast<float>(random() % 20) - 10.0F);
  }
  return values;
}

// Few different magnitudes, so that most are equal to many others.
inline std::vector<float> tied_update(std::size_t elements, unsigned magnitudes,
                                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> update(elements);
  for (float& v : update) {
    const auto magnitude = static_cast<float>(random() % magnitudes);
    v = random() % 2 == 0 ? magnitude : -magnitude;
  }
  return update;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  }
  return true;
}

}  // namespace longhaul::testing_data
