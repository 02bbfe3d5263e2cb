// PowerSGD: each matrix as the product of two thin factors. Layers that are not matrices, or too
// small to gain, travel as they are.
#pragma once

#include <optional>
#include <vector>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/codec.h"

namespace longhaul {

// Sends layers as products of two thin matrices.
// kLowRank: each replica for itself, by one step of power iteration that starts from the last one's
// result.
//
// kSharedLowRank: all replicas on one basis, which is what the means of the rounds span. One of the
// two factors is that basis, the left one and the right one in turns. The mean of such payloads is
// one, whose other factor is the mean of theirs.
class LowRank final : public Codec {
 public:
  // Updates are laid out like `layers`.
  LowRank(const CodecOptions& options, const LayerTable& layers);

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;
  void learn(std::span<const float> mean) override;
  // The right bases that the next power iteration starts from. If it is shared: left bases, right
  // bases, and whose turn it is.
  [[nodiscard]] std::span<float> state() override { return state_; }
  [[nodiscard]] bool shares_state() const override {
    return options_.kind == CodecKind::kSharedLowRank;
  }

 private:
  void append_own_factors(const FactoredMatrix& matrix, std::span<const float> values,
                          std::vector<float>& factors);
  void append_shared_factors(const FactoredMatrix& matrix, std::span<const float> values,
                             std::vector<float>& factors);
  [[nodiscard]] std::span<float> left_of(const FactoredMatrix& matrix);
  [[nodiscard]] std::span<float> right_of(const FactoredMatrix& matrix);

  CodecOptions options_;
  std::vector<FactoredMatrix> matrices_;  // how the layers are seen as matrices
  std::vector<float> state_;
};

// The weighted sum of payloads that have one factor in common, as one of the same form, in fp32.
// Nothing, if they have not. Empty ones are left out.
std::optional<ByteBuffer> sum_of_factors(std::span<const WeightedPayload> payloads);

}  // namespace longhaul
