#include "longhaul/sync/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/exchange/saved.h"

namespace longhaul {
namespace {

constexpr std::size_t kPiece = 4096;  // elements of a preview at most

std::size_t buffers_of(OptimizerKind kind) {
  if (kind == OptimizerKind::kSgd) return 0;
  return kind == OptimizerKind::kAdamW ? 2 : 1;
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& spec, std::size_t elements)
    : spec_(spec), elements_(elements) {}

void Optimizer::allocate() { state_.resize(buffers_of(spec_.kind) * elements_); }

// Weight decay is left out: it adds a small share of the parameters, which are not absurd.
bool Optimizer::accept(std::size_t first, float largest_gradient, double lr) {
  const bool is_adamw = spec_.kind == OptimizerKind::kAdamW;
  const auto momentum = static_cast<double>(spec_.momentum);
  const double gradient = largest_gradient;
  double& largest = largest_states_.try_emplace(first, largest_loaded_).first->second;
  const double state = momentum * largest + (is_adamw ? 1 - momentum : 1) * gradient;
  double move = spec_.kind == OptimizerKind::kSgd ? gradient : state;
  if (spec_.kind == OptimizerKind::kNesterov) move = gradient + momentum * state;
  if (is_adamw) move = state / ((1 - momentum) * static_cast<double>(spec_.epsilon));
  if (!(lr * move < static_cast<double>(kAbsurd))) return false;  // NaN is refused too
  largest = state;
  return true;
}

kernels::OptimizerStep Optimizer::begin(std::size_t first, double lr, float gradient_scale) {
  allocate();
  kernels::OptimizerStep step{.lr = static_cast<float>(lr),
                              .momentum = spec_.momentum,
                              .second_moment = spec_.second_moment,
                              .epsilon = spec_.epsilon,
                              .weight_decay = spec_.weight_decay,
                              .gradient_scale = gradient_scale,
                              .is_nesterov = spec_.kind == OptimizerKind::kNesterov};
  if (spec_.kind != OptimizerKind::kAdamW) return step;
  const float count = ++steps_[first];
  step.unbias_first = 1.0F - std::pow(spec_.momentum, count);
  step.unbias_second = 1.0F - std::pow(spec_.second_moment, count);
  return step;
}

void Optimizer::apply(const kernels::OptimizerStep& step, std::span<float> first_state,
                      std::span<float> second_state, std::span<float> parameters,
                      std::span<const float> gradient) const {
  if (spec_.kind == OptimizerKind::kAdamW)
    return kernels::adamw_step(step, gradient, first_state, second_state, parameters);
  kernels::sgd_step(step, gradient, first_state, parameters);
}

void Optimizer::step(const kernels::OptimizerStep& step, std::size_t first,
                     std::span<float> parameters, std::span<const float> gradient) {
  LONGHAUL_CHECK_LE(first + parameters.size(), elements_);
  LONGHAUL_CHECK_EQ(state_.size(), buffers_of(spec_.kind) * elements_);  // begin() came first
  const auto buffer = [&](std::size_t number) {
    return number < buffers_of(spec_.kind)
               ? std::span(state_).subspan(number * elements_ + first, parameters.size())
               : std::span<float>();
  };
  apply(step, buffer(0), buffer(1), parameters, gradient);
}

void Optimizer::preview(const kernels::OptimizerStep& step, std::size_t first,
                        std::span<float> parameters, std::span<const float> gradient) const {
  LONGHAUL_CHECK_LE(parameters.size(), kPiece);
  std::array<std::array<float, kPiece>, 2> copies;
  const auto copy_of = [&](std::size_t number) {
    if (number >= buffers_of(spec_.kind)) return std::span<float>();
    const std::span copy = std::span(copies[number]).first(parameters.size());
    std::ranges::copy(std::span(state_).subspan(number * elements_ + first, copy.size()),
                      copy.begin());
    return copy;
  };
  apply(step, copy_of(0), copy_of(1), parameters, gradient);
}

void Optimizer::regroup(std::span<const std::size_t> firsts) {
  const std::map<std::size_t, float> before = std::exchange(steps_, {});
  for (const std::size_t first : firsts) {
    const auto after = before.upper_bound(first);
    if (after != before.begin()) steps_[first] = std::prev(after)->second;
  }
  for (const auto& [first, largest] : std::exchange(largest_states_, {}))
    largest_loaded_ = std::max(largest_loaded_, largest);
}

void Optimizer::clear() {
  state_ = {};
  steps_.clear();
  largest_states_.clear();
  largest_loaded_ = 0;
}

void Optimizer::save(State& state, std::string_view name) const {
  save_tensor(name,
              state_.empty() ? std::vector<float>(buffers_of(spec_.kind) * elements_) : state_,
              state);
  std::vector<std::uint64_t> parts;
  std::vector<double> steps;
  for (const auto& [first, count] : steps_) {
    parts.push_back(first);
    steps.push_back(count);
  }
  state.values[std::string(name) + ".parts"] = parts;
  state.values[std::string(name) + ".steps"] = steps;
}

Status Optimizer::load(const State& state, std::string_view name) {
  const auto parts = state.value<std::vector<std::uint64_t>>(std::string(name) + ".parts");
  const auto steps = state.value<std::vector<double>>(std::string(name) + ".steps");
  if (!parts.ok()) return parts.error();
  if (!steps.ok()) return steps.error();
  if (parts->size() != steps->size())
    return Error{ErrorCode::kMismatch, std::string(name) + ": not one count for each part"};
  allocate();
  Status loaded = load_tensor(name, state, state_);
  if (!loaded.ok()) return loaded;
  steps_.clear();
  for (std::size_t i = 0; i < parts->size(); ++i)
    steps_[(*parts)[i]] = static_cast<float>((*steps)[i]);
  largest_states_.clear();
  largest_loaded_ = static_cast<double>(
      kernels::largest_magnitude(std::span(state_).first(std::min(state_.size(), elements_))));
  return loaded;
}

}  // namespace longhaul
