// PowerSGD: each matrix as the product of two thin factors, found by one step of power iteration
// that starts from the last one's result. Layers that are not matrices, or too small to gain,
// travel as they are.
#pragma once

#include <vector>

#include "longhaul/codec/codec.h"

namespace longhaul {

class LowRank final : public Codec {
 public:
  // Updates are laid out like `layers`; an empty table stands for one vector, which gains nothing.
  LowRank(std::uint32_t rank, ValueFormat format, const LayerTable& layers);

  [[nodiscard]] ByteBuffer take(const TakeRequest& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;
  // The bases that the next power iteration starts from.
  [[nodiscard]] std::span<float> state() override { return bases_; }

 private:
  struct Matrix {
    std::size_t begin = 0;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::uint32_t rank = 0;  // 0: sent as it is
    std::size_t basis = 0;   // first of rank · columns floats in bases_
  };
  [[nodiscard]] std::vector<Matrix> matrices_for(std::size_t elements) const;
  void append_factors(const Matrix& matrix, std::span<const float> values,
                      std::vector<float>& factors);

  ValueFormat format_;
  std::vector<Matrix> matrices_;
  std::vector<float> bases_;
};

}  // namespace longhaul
