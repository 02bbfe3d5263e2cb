#include "trainer/model.h"

#include <cmath>
#include <span>
#include <utility>

namespace longhaul::trainer {
namespace {

double bound_for(std::int64_t inputs) { return std::sqrt(6 / static_cast<double>(inputs)); }

}  // namespace

torch::Tensor Model::add(const std::string& name, torch::Tensor tensor) {
  tensor.requires_grad_(true);
  parameters_.insert(name, tensor);
  return tensor;
}

torch::Tensor Model::uniform(const std::string& name, const Shape& shape, double bound) {
  torch::Tensor tensor = torch::empty(shape, torch::kFloat32);
  std::span values(tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel()));
  for (float& value : values) value = static_cast<float>((2 * random_.uniform() - 1) * bound);
  return add(name, tensor);
}

torch::Tensor Model::normal(const std::string& name, const Shape& shape, double deviation) {
  torch::Tensor tensor = torch::empty(shape, torch::kFloat32);
  std::span values(tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel()));
  for (float& value : values) value = static_cast<float>(random_.normal() * deviation);
  return add(name, tensor);
}

torch::Tensor Model::constant(const std::string& name, const Shape& shape, double value) {
  return add(name, torch::full(shape, value, torch::kFloat32));
}

Weights Model::linear_layer(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  return {uniform(name + ".weight", {outputs, inputs}, bound_for(inputs)),
          constant(name + ".bias", {outputs}, 0)};
}

Weights Model::conv_layer(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                          std::int64_t side) {
  return {uniform(name + ".weight", {outputs, inputs, side, side}, bound_for(inputs * side * side)),
          constant(name + ".bias", {outputs}, 0)};
}

Weights Model::norm_layer(const std::string& name, std::int64_t width) {
  return {constant(name + ".weight", {width}, 1), constant(name + ".bias", {width}, 0)};
}

torch::Tensor Model::dropout(const torch::Tensor& input, double share) const {
  if (share <= 0 || !generator_.defined()) return input;
  const torch::Tensor kept = torch::empty_like(input.detach()).bernoulli_(1 - share, generator_);
  return input * kept / (1 - share);
}

}  // namespace longhaul::trainer
