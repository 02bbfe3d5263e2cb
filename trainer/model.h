// The base of all models. Includes torch: only for .cpp files of the trainer and their tests.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/types.h>

#include <optional>
#include <string>
#include <vector>

#include "trainer/arena.h"
#include "trainer/model_table.h"

namespace longhaul::trainer {

// The parameters of one layer.
struct Weights {
  torch::Tensor weight;
  torch::Tensor bias;
};

// Parameters in forward order and a forward pass. Initial values come from our own random draws, so
// that they are the same with every version of torch.
class Model {
 public:
  explicit Model(Random& random) : random_(random) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Images (batch, channels, height, width) → logits (batch, classes);
  // text (batch, positions) of tokens → logits (batch, positions, vocabulary).
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

  // Made at the first call, which moves the parameters into it.
  Arena& arena() { return arena_ ? *arena_ : arena_.emplace(parameters_); }

  // Dropout draws from a generator of its own, so that parallel models do not disturb each other.
  // Without one there is no dropout: evaluation.
  void set_generator(at::Generator generator) { generator_ = std::move(generator); }
  [[nodiscard]] const at::Generator& generator() const { return generator_; }

 protected:
  using Shape = std::vector<std::int64_t>;

  // Register a parameter, in the order of use; only in constructors.
  torch::Tensor uniform(const std::string& name, const Shape& shape, double bound);
  torch::Tensor normal(const std::string& name, const Shape& shape, double deviation);
  torch::Tensor constant(const std::string& name, const Shape& shape, double value);

  // Layers with weight and bias. Uniform weights have the variance that keeps activations in scale
  // through relu, 2 / inputs (He et al. 2015, arXiv:1502.01852).
  Weights linear_layer(const std::string& name, std::int64_t inputs, std::int64_t outputs);
  Weights conv_layer(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                     std::int64_t side);
  Weights norm_layer(const std::string& name, std::int64_t width);

  [[nodiscard]] torch::Tensor dropout(const torch::Tensor& input, double share) const;

 private:
  torch::Tensor add(const std::string& name, torch::Tensor tensor);

  Random& random_;
  Parameters parameters_;
  std::optional<Arena> arena_;
  at::Generator generator_;
};

}  // namespace longhaul::trainer
