// The inner loops of the optimizers, in SIMD through Highway. Every target gives the same bits:
// arithmetic is element by element, without fused multiply-add.
#pragma once

#include <span>

namespace longhaul::kernels {

// A step of an optimizer: what all of its elements share. The gradient is multiplied by
// `gradient_scale` first.
struct OptimizerStep {
  float lr = 0.0F;
  float momentum = 0.0F;        // β1 of AdamW
  float second_moment = 0.95F;  // β2 of AdamW
  float unbias_first = 1.0F;    // 1 - β1^t of AdamW
  float unbias_second = 1.0F;   // 1 - β2^t of AdamW
  float epsilon = 1e-8F;        // of AdamW
  float weight_decay = 0.0F;
  float gradient_scale = 1.0F;
  bool is_nesterov = false;  // of SGD
};

// v = μ·v + g, x -= lr·v (Nesterov: x -= lr·(g + μ·v)), with g = scale·gradient + decay·x. Without
// a velocity: x -= lr·g.
void sgd_step(const OptimizerStep& step, std::span<const float> gradient, std::span<float> velocity,
              std::span<float> parameters);

void adamw_step(const OptimizerStep& step, std::span<const float> gradient, std::span<float> first,
                std::span<float> second, std::span<float> parameters);

}  // namespace longhaul::kernels
