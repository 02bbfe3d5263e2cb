#include "longhaul/sync/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/sync/saved.h"

namespace longhaul {
namespace {

constexpr std::array kNames{
    std::pair{std::string_view("sgd"), OptimizerKind::kSgd},
    std::pair{std::string_view("momentum"), OptimizerKind::kMomentum},
    std::pair{std::string_view("nesterov"), OptimizerKind::kNesterov},
    std::pair{std::string_view("adamw"), OptimizerKind::kAdamW},
};

// A finite gradient may have a square that is not; such a moment would never move again.
constexpr float kMostSecondMoment = 1e37F;

std::size_t buffers_of(OptimizerKind kind) {
  if (kind == OptimizerKind::kSgd) return 0;
  return kind == OptimizerKind::kAdamW ? 3 : 1;
}

}  // namespace

Result<OptimizerKind> parse_optimizer(std::string_view name) {
  for (const auto& [known, kind] : kNames) {
    if (known == name) return kind;
  }
  return Error{
      ErrorCode::kInvalidArgument,
      "optimizer: expected sgd, momentum, nesterov or adamw, got \"" + std::string(name) + '"'};
}

Optimizer::Optimizer(const OptimizerSpec& spec, std::size_t elements)
    : spec_(spec), elements_(elements), state_(buffers_of(spec.kind) * elements, 0.0F) {}

void Optimizer::step(std::size_t first, std::span<float> parameters,
                     std::span<const float> gradient, double lr) {
  LONGHAUL_CHECK_EQ(parameters.size(), gradient.size());
  LONGHAUL_CHECK_LE(first + parameters.size(), elements_);
  if (spec_.kind == OptimizerKind::kAdamW)
    return adamw_step(first, parameters, gradient, static_cast<float>(lr));
  const std::span velocity =
      state_.empty() ? std::span<float>() : std::span(state_).subspan(first, parameters.size());
  sgd_step(velocity, parameters, gradient, static_cast<float>(lr));
}

void Optimizer::save(State& state, std::string_view name) const {
  save_tensor(name, state_, state);
}

Status Optimizer::load(const State& state, std::string_view name) {
  return load_tensor(name, state, state_);
}

void Optimizer::sgd_step(std::span<float> velocity, std::span<float> parameters,
                         std::span<const float> gradient, float lr) const {
  const float decay = spec_.weight_decay;
  const float momentum = spec_.momentum;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    float g = gradient[i] + decay * parameters[i];
    if (spec_.kind != OptimizerKind::kSgd) {
      velocity[i] = momentum * velocity[i] + g;
      g = spec_.kind == OptimizerKind::kNesterov ? g + momentum * velocity[i] : velocity[i];
    }
    parameters[i] -= lr * g;
  }
}

void Optimizer::adamw_step(std::size_t first, std::span<float> parameters,
                           std::span<const float> gradient, float lr) {
  const std::span first_moment = std::span(state_).subspan(first, parameters.size());
  const std::span second_moment = std::span(state_).subspan(elements_ + first, parameters.size());
  // Counted per element, as parts of the model may be stepped at different times; equal within a
  // part.
  const std::span steps = std::span(state_).subspan(2 * elements_ + first, parameters.size());
  if (parameters.empty()) return;
  const float count = steps[0] + 1.0F;
  const float unbias_first = 1.0F - std::pow(spec_.momentum, count);
  const float unbias_second = 1.0F - std::pow(spec_.second_moment, count);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    steps[i] = count;
    first_moment[i] = spec_.momentum * first_moment[i] + (1.0F - spec_.momentum) * gradient[i];
    second_moment[i] = std::min(spec_.second_moment * second_moment[i] +
                                    (1.0F - spec_.second_moment) * gradient[i] * gradient[i],
                                kMostSecondMoment);
    const float scale = std::sqrt(second_moment[i] / unbias_second) + spec_.epsilon;
    parameters[i] -=
        lr * (first_moment[i] / unbias_first / scale + spec_.weight_decay * parameters[i]);
  }
}

}  // namespace longhaul
