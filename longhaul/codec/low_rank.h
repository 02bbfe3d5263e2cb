// PowerSGD: each matrix as the product of two thin factors. Layers that are not matrices, or too
// small to gain, travel as they are.
#pragma once

#include <optional>
#include <vector>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/codec.h"

namespace longhaul {

// How the layers of a model are seen as matrices.
class MatrixLayout {
 public:
  struct Matrix {
    std::size_t begin = 0;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::uint32_t rank = 0;  // 0: sent as it is
    std::size_t left = 0;    // first of rank · rows floats, in all left factors
    std::size_t right = 0;   // first of rank · columns floats, in all right ones
    [[nodiscard]] std::size_t count() const { return std::size_t{rows} * columns; }
  };
  // An empty table stands for one vector, which gains nothing.
  MatrixLayout(std::uint32_t rank, const LayerTable& layers);

  [[nodiscard]] std::vector<Matrix> of(std::size_t elements) const;
  [[nodiscard]] const std::vector<Matrix>& matrices() const { return matrices_; }
  [[nodiscard]] std::size_t left_floats() const { return left_; }
  [[nodiscard]] std::size_t right_floats() const { return right_; }
  [[nodiscard]] double expected_bytes(std::size_t elements, ValueFormat format) const;

 private:
  std::vector<Matrix> matrices_;
  std::size_t left_ = 0;
  std::size_t right_ = 0;
};

// Each replica for itself: one step of power iteration that starts from the last one's result.
class LowRank final : public Codec {
 public:
  // Updates are laid out like `layers`.
  LowRank(std::uint32_t rank, ValueFormat format, const LayerTable& layers);

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;
  // The bases that the next power iteration starts from.
  [[nodiscard]] std::span<float> state() override { return bases_; }

 private:
  using Matrix = MatrixLayout::Matrix;
  void append_factors(const Matrix& matrix, std::span<const float> values,
                      std::vector<float>& factors);

  ValueFormat format_;
  MatrixLayout layout_;
  std::vector<float> bases_;
};

// All replicas on one basis, which is what the means of the rounds span: one of the two factors is
// that basis, the left one and the right one in turns, and the mean of such payloads is one, whose
// other factor is the mean of theirs.
class SharedLowRank final : public Codec {
 public:
  SharedLowRank(std::uint32_t rank, ValueFormat format, const LayerTable& layers);

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;
  void learn(std::span<const float> mean) override;
  // Left bases, right bases, and whose turn it is.
  [[nodiscard]] std::span<float> state() override { return state_; }
  [[nodiscard]] bool shares_state() const override { return true; }

 private:
  using Matrix = MatrixLayout::Matrix;
  [[nodiscard]] std::span<float> left_of(const Matrix& matrix);
  [[nodiscard]] std::span<float> right_of(const Matrix& matrix);

  ValueFormat format_;
  MatrixLayout layout_;
  std::vector<float> state_;
};

// The weighted sum of payloads that have one factor in common, as one of the same form, in fp32.
// Nothing, if they have not. Empty ones are left out.
std::optional<ByteBuffer> sum_of_factors(std::span<const WeightedPayload> payloads);

}  // namespace longhaul
