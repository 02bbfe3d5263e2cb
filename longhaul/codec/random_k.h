// A random share of the elements, drawn from the round's seed: no index travels.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

class RandomK final : public Codec {
 public:
  RandomK(ValueFormat format, Workers& workers) : format_(format), workers_(workers) {}

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;

 private:
  ValueFormat format_;
  Workers& workers_;
};

// CocktailSGD's chain: a random subset drawn from the round's seed, the largest fifth of it, few
// bits for each.
class Cocktail final : public Codec {
 public:
  static constexpr double kTopShare =
      0.2;  // of the subset; the subset makes up the rest of the keep ratio

  Cocktail(ValueFormat format, Workers& workers) : format_(format), workers_(workers) {}

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;

 private:
  ValueFormat format_;
  Workers& workers_;
};

}  // namespace longhaul
