// The base of all models. Includes torch: only for .cpp files of the trainer and their tests.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "trainer/arena.h"
#include "trainer/model_table.h"

namespace longhaul::trainer {

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

  [[nodiscard]] const std::vector<NamedParameter>& parameters() const { return parameters_; }

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

  [[nodiscard]] torch::Tensor dropout(const torch::Tensor& input, double share) const;

 private:
  torch::Tensor add(const std::string& name, torch::Tensor tensor);

  Random& random_;
  std::vector<NamedParameter> parameters_;
  at::Generator generator_;
};

}  // namespace longhaul::trainer
