// The parameters of one model in one flat float32 buffer and their gradients in another; tensors
// are views into them. Includes torch: only for .cpp files of the trainer and their tests.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/codec/layer_table.h"

namespace longhaul::trainer {

// Parameters by their names in the model, in forward order.
using Parameters = torch::OrderedDict<std::string, torch::Tensor>;

class Arena {
 public:
  // Elements of one layer. Empty: nobody is told.
  using Told = std::function<void(std::size_t first, std::size_t count)>;

  // Moves the values of `parameters` (float32 on the CPU) into the arena and makes their data and
  // .grad views of it. The buffers are laid out in backward order, so that offsets ascend as
  // gradients become ready. A tensor that occurs twice (tied) is laid out once, at its first use:
  // its gradient is ready last.
  explicit Arena(const Parameters& parameters);

  [[nodiscard]] const LayerTable& layers() const { return layers_; }
  [[nodiscard]] std::span<float> parameters() { return span_of(values_); }
  [[nodiscard]] std::span<float> gradient() { return span_of(gradients_); }

  // Backward accumulates, so this comes before it.
  void clear_gradient();

  // While `forward` runs on this thread, calls before_use(first, count) with the elements of each
  // layer just before torch first reads them. Values written there are those that are read.
  void tell_before_use(const std::function<void()>& forward, const Told& before_use);

  // While `backward` runs, calls ready(first, count) with the elements of each layer as soon as
  // their gradient is final. By then backward does not read the layer's parameters any more.
  void tell_when_ready(const std::function<void()>& backward, const Told& ready);

  // Throws std::logic_error where a .grad is no longer the view it was: someone else cleared or
  // replaced it.
  void check_views() const;

 private:
  static std::span<float> span_of(const torch::Tensor& flat);
  [[nodiscard]] torch::Tensor view_of(const torch::Tensor& flat, const Layer& layer) const;

  LayerTable layers_;
  std::vector<torch::Tensor> tensors_;  // in the order of layers_
  torch::Tensor values_;
  torch::Tensor gradients_;
  // The nodes that add to the gradients, with hooks that call `ready_`; made when first wanted, and
  // kept here as tensors do not own them. An arena may move, so what the hooks read does not.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::shared_ptr<Told> ready_;
};

}  // namespace longhaul::trainer
