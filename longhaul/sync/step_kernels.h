// The inner loops of the optimizers, in SIMD through Highway. Every target gives the same bits:
// arithmetic is element by element, without fused multiply-add.
#pragma once

#include <span>

namespace longhaul::kernels {

// One step of SGD. `gradient` is multiplied by `gradient_scale` first.
struct SgdStep {
  float lr = 0.0F;
  float momentum = 0.0F;
  float weight_decay = 0.0F;
  float gradient_scale = 1.0F;
  bool is_nesterov = false;
};

// v = μ·v + g, x -= lr·v (Nesterov: x -= lr·(g + μ·v)), with g = scale·gradient + decay·x. Without
// a velocity: x -= lr·g.
void sgd_step(const SgdStep& step, std::span<const float> gradient, std::span<float> velocity,
              std::span<float> parameters);

struct AdamWStep {
  float lr = 0.0F;
  float first_decay = 0.9F;    // β1
  float second_decay = 0.95F;  // β2
  float unbias_first = 1.0F;   // 1 - β1^t
  float unbias_second = 1.0F;  // 1 - β2^t
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  float gradient_scale = 1.0F;
};

void adamw_step(const AdamWStep& step, std::span<const float> gradient, std::span<float> first,
                std::span<float> second, std::span<float> parameters);

}  // namespace longhaul::kernels
