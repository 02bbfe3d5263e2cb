// Optimizers on flat parameters, part by part: the same arithmetic on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul {

struct State;

enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kNesterov, kAdamW };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kMomentum;
  float momentum = 0.9F;        // β1 of AdamW
  float second_moment = 0.95F;  // β2 of AdamW
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;  // decoupled in AdamW, added to the gradient otherwise
};

Result<OptimizerKind> parse_optimizer(std::string_view name);  // sgd, momentum, nesterov, adamw

class Optimizer {
 public:
  Optimizer(const OptimizerSpec& spec, std::size_t elements);

  // Moves the `parameters` that begin at element `first` of the model against `gradient`.
  void step(std::size_t first, std::span<float> parameters, std::span<const float> gradient,
            double lr);

  // All that it remembers, in place.
  [[nodiscard]] std::span<float> state() { return state_; }

  void save(State& state, std::string_view name = "optimizer") const;
  // On an error nothing has changed.
  Status load(const State& state, std::string_view name = "optimizer");

 private:
  void sgd_step(std::span<float> velocity, std::span<float> parameters,
                std::span<const float> gradient, float lr) const;
  void adamw_step(std::size_t first, std::span<float> parameters, std::span<const float> gradient,
                  float lr);

  OptimizerSpec spec_;
  std::size_t elements_;
  std::vector<float>
      state_;  // velocities; for AdamW: first moments, second moments, steps of each element
};

}  // namespace longhaul
