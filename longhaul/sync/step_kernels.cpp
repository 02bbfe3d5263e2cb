#include "longhaul/sync/step_kernels.h"

#include <algorithm>
#include <cmath>

#include "longhaul/base/check.h"

#ifndef LONGHAUL_SYNC_STEP_KERNELS_PLAIN  // once, not once per target
#define LONGHAUL_SYNC_STEP_KERNELS_PLAIN
namespace longhaul::kernels {
namespace {

// A finite gradient may have a square that is not; such a moment would never move again.
constexpr float kMostSecondMoment = 1e37F;

inline void sgd_element(const OptimizerStep& step, float gradient, float* velocity, float& x) {
  float g = gradient * step.gradient_scale + step.weight_decay * x;
  if (velocity != nullptr) {
    *velocity = step.momentum * *velocity + g;
    g = step.is_nesterov ? g + step.momentum * *velocity : *velocity;
  }
  x -= step.lr * g;
}

inline void adamw_element(const OptimizerStep& step, float gradient, float& first, float& second,
                          float& x) {
  const float g = gradient * step.gradient_scale;
  first = step.momentum * first + (1.0F - step.momentum) * g;
  second = std::min(step.second_moment * second + (1.0F - step.second_moment) * g * g,
                    kMostSecondMoment);
  const float scale = std::sqrt(second / step.unbias_second) + step.epsilon;
  x -= step.lr * (first / step.unbias_first / scale + step.weight_decay * x);
}

}  // namespace
}  // namespace longhaul::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "longhaul/sync/step_kernels.cpp"
#include "hwy/foreach_target.h"  // includes this file once per target
#include "longhaul/codec/kernels_target.h"

HWY_BEFORE_NAMESPACE();
namespace longhaul::kernels::HWY_NAMESPACE {
namespace {

template <bool kVelocity, bool kNesterov>
void sgd_loop(const OptimizerStep& step, const float* gradient, float* velocity, float* parameters,
              std::size_t count) {
  const Floats d;
  const auto lr = hn::Set(d, step.lr);
  const auto momentum = hn::Set(d, step.momentum);
  const auto decay = hn::Set(d, step.weight_decay);
  const auto scale = hn::Set(d, step.gradient_scale);
  sweep<kWidth>(
      count,
      [&](std::size_t i) HWY_ATTR {
        fetch_ahead(gradient + i);
        fetch_ahead(parameters + i);
        if constexpr (kVelocity) fetch_ahead(velocity + i);
        const auto x = hn::LoadU(d, parameters + i);
        auto g = hn::Add(hn::Mul(hn::LoadU(d, gradient + i), scale), hn::Mul(decay, x));
        if constexpr (kVelocity) {
          const auto v = hn::Add(hn::Mul(momentum, hn::LoadU(d, velocity + i)), g);
          hn::StoreU(v, d, velocity + i);
          g = kNesterov ? hn::Add(g, hn::Mul(momentum, v)) : v;
        }
        hn::StoreU(hn::Sub(x, hn::Mul(lr, g)), d, parameters + i);
      },
      [&](std::size_t i) {
        sgd_element(step, gradient[i], kVelocity ? velocity + i : nullptr, parameters[i]);
      });
}

void sgd_step_target(const OptimizerStep& step, std::span<const float> gradient,
                     std::span<float> velocity, std::span<float> parameters) {
  const std::size_t count = parameters.size();
  float* x = parameters.data();
  if (velocity.empty()) return sgd_loop<false, false>(step, gradient.data(), nullptr, x, count);
  if (step.is_nesterov)
    return sgd_loop<true, true>(step, gradient.data(), velocity.data(), x, count);
  sgd_loop<true, false>(step, gradient.data(), velocity.data(), x, count);
}

void adamw_step_target(const OptimizerStep& step, std::span<const float> gradient,
                       std::span<float> first, std::span<float> second,
                       std::span<float> parameters) {
  const Floats d;
  const auto set = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const auto b1 = set(step.momentum);
  const auto c1 = set(1.0F - step.momentum);
  const auto b2 = set(step.second_moment);
  const auto c2 = set(1.0F - step.second_moment);
  const auto u1 = set(step.unbias_first);
  const auto u2 = set(step.unbias_second);
  sweep<kWidth>(
      parameters.size(),
      [&](std::size_t i) HWY_ATTR {
        const auto g = hn::Mul(hn::LoadU(d, gradient.data() + i), set(step.gradient_scale));
        const auto m = hn::Add(hn::Mul(b1, hn::LoadU(d, first.data() + i)), hn::Mul(c1, g));
        const auto v = hn::Min(
            hn::Add(hn::Mul(b2, hn::LoadU(d, second.data() + i)), hn::Mul(hn::Mul(c2, g), g)),
            set(kMostSecondMoment));
        hn::StoreU(m, d, first.data() + i);
        hn::StoreU(v, d, second.data() + i);
        const auto x = hn::LoadU(d, parameters.data() + i);
        const auto scale = hn::Add(hn::Sqrt(hn::Div(v, u2)), set(step.epsilon));
        const auto move =
            hn::Add(hn::Div(hn::Div(m, u1), scale), hn::Mul(set(step.weight_decay), x));
        hn::StoreU(hn::Sub(x, hn::Mul(set(step.lr), move)), d, parameters.data() + i);
      },
      [&](std::size_t i) { adamw_element(step, gradient[i], first[i], second[i], parameters[i]); });
}

}  // namespace
}  // namespace longhaul::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longhaul::kernels {

HWY_EXPORT(sgd_step_target);
HWY_EXPORT(adamw_step_target);

void sgd_step(const OptimizerStep& step, std::span<const float> gradient, std::span<float> velocity,
              std::span<float> parameters) {
  LONGHAUL_CHECK_EQ(gradient.size(), parameters.size());
  if (!velocity.empty()) LONGHAUL_CHECK_EQ(velocity.size(), parameters.size());
  HWY_DYNAMIC_DISPATCH(sgd_step_target)(step, gradient, velocity, parameters);
}

void adamw_step(const OptimizerStep& step, std::span<const float> gradient, std::span<float> first,
                std::span<float> second, std::span<float> parameters) {
  LONGHAUL_CHECK_EQ(gradient.size(), parameters.size());
  LONGHAUL_CHECK_EQ(first.size(), parameters.size());
  LONGHAUL_CHECK_EQ(second.size(), parameters.size());
  HWY_DYNAMIC_DISPATCH(adamw_step_target)(step, gradient, first, second, parameters);
}

}  // namespace longhaul::kernels
#endif  // HWY_ONCE
