// The learner of a light replica: a model that is only numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/sync/learner.h"
#include "longhaul/sync/replica.h"

namespace longhaul::bench {

// A quadratic with a centre of each replica's own, and noise: the gradient depends on slot, step
// and parameters alone, so a replica that does a step again does the same.
class LightLearner final : public Learner {
 public:
  LightLearner(std::size_t slot, std::size_t elements)
      : slot_(slot), parameters_(elements, 1.0F), gradient_(elements) {}

  [[nodiscard]] std::span<float> parameters() override { return parameters_; }
  [[nodiscard]] std::span<float> gradient() override { return gradient_; }
  double compute_gradient() override {
    const std::uint64_t step = replica->engine().steps_done();
    constexpr float kScale = 0x1p-31F;
    const auto centre = 0.1F * static_cast<float>(slot_ % 7) / 7;
    std::uint64_t random = (slot_ + 1) * 0x9E3779B97F4A7C15U + step * 0xD1B54A32D192ED03U;
    double loss = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const float noise = static_cast<float>(static_cast<std::int32_t>(random >> 32U)) * kScale;
      const float off = parameters_[i] - centre;
      loss += 0.5 * static_cast<double>(off * off);
      gradient_[i] = off + 0.3F * noise;
    }
    return loss / static_cast<double>(parameters_.size());
  }

  // The gradient is a function of slot, step and parameters: there is no place to keep.
  void save(State& /*state*/) const override {}
  Status load(const State& /*state*/) override { return Done{}; }

  // Set before the first gradient.
  const Replica* replica = nullptr;

 private:
  std::size_t slot_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
};

}  // namespace longhaul::bench
