#include "trainer/arena.h"

#include <algorithm>
#include <cstring>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "longhaul/base/check.h"
#include "trainer/use_watch.h"

namespace longhaul::trainer {
namespace {

using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;

// Runs after the layer's gradient was added to.
std::unique_ptr<LambdaPostHook> hook_for(const Layer& layer,
                                         std::shared_ptr<const Arena::Told> ready) {
  return std::make_unique<LambdaPostHook>(
      [first = layer.offset, count = layer.count, ready = std::move(ready)](
          const variable_list& outputs, const variable_list& /*inputs*/) {
        if (*ready) (*ready)(first, count);
        return outputs;
      });
}

}  // namespace

Arena::Arena(const Parameters& parameters) {
  std::size_t total = 0;
  for (const auto& parameter : parameters) {
    LONGHAUL_CHECK(parameter->scalar_type() == torch::kFloat32);
    LONGHAUL_CHECK(parameter->device().is_cpu());
  }
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const torch::Tensor& tensor = parameters[i].value();
    const auto is_same = [&](const auto& other) { return other->is_same(tensor); };
    const auto begin = parameters.begin();
    if (std::any_of(begin, begin + static_cast<std::ptrdiff_t>(i), is_same)) continue;
    const auto count = static_cast<std::size_t>(tensor.numel());
    layers_.push_back({.name = parameters[i].key(),
                       .offset = total,
                       .count = count,
                       .shape = tensor.sizes().vec()});
    tensors_.push_back(tensor);
    total += count;
  }
  const torch::NoGradGuard no_grad;
  values_ = torch::zeros({static_cast<std::int64_t>(total)}, torch::kFloat32);
  gradients_ = torch::zeros_like(values_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    torch::Tensor values = view_of(values_, layers_[i]);
    values.copy_(tensors_[i].detach());
    tensors_[i].set_data(values);
    tensors_[i].mutable_grad() = view_of(gradients_, layers_[i]);
  }
}

std::span<float> Arena::span_of(const torch::Tensor& flat) {
  return {flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

torch::Tensor Arena::view_of(const torch::Tensor& flat, const Layer& layer) const {
  const auto offset = static_cast<std::int64_t>(layer.offset);
  return flat.narrow(0, offset, static_cast<std::int64_t>(layer.count)).view(layer.shape);
}

void Arena::clear_gradient() { std::ranges::fill(gradient(), 0.0F); }

void Arena::tell_before_use(const std::function<void()>& forward, const Told& before_use) {
  if (!before_use) return forward();
  watch_uses(layers_, values_, forward, before_use);
}

void Arena::tell_when_ready(const std::function<void()>& backward, const Told& ready) {
  if (!ready) return backward();
  if (!ready_) {
    ready_ = std::make_shared<Told>();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(tensors_[i]));
      accumulators_.back()->add_post_hook(hook_for(layers_[i], ready_));
    }
  }
  *ready_ = ready;
  backward();
  *ready_ = nullptr;
}

void Arena::check_views() const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const torch::Tensor& gradient = tensors_[i].grad();
    LONGHAUL_CHECK(gradient.defined());
    LONGHAUL_CHECK_EQ(gradient.data_ptr<float>(), gradients_.data_ptr<float>() + layers_[i].offset);
    LONGHAUL_CHECK_EQ(tensors_[i].data_ptr<float>(), values_.data_ptr<float>() + layers_[i].offset);
  }
}

}  // namespace longhaul::trainer
