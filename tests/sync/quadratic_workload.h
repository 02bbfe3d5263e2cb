// A workload without torch: each replica minimises its own noisy quadratic, so that gradients
// differ between replicas and steps.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "longhaul/base/state.h"
#include "longhaul/sync/learner.h"

namespace longhaul::testing {

inline float uniform(std::mt19937_64& random) {
  return static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
}

class QuadraticLearner final : public Learner {
 public:
  QuadraticLearner(std::size_t elements, std::uint64_t seed, float noise)
      : random_(seed),
        noise_(noise),
        parameters_(elements, 1.0F),
        gradient_(elements),
        centre_(elements) {
    for (float& c : centre_) c = 0.1F * uniform(random_);
  }

  [[nodiscard]] std::span<float> parameters() override { return parameters_; }
  [[nodiscard]] std::span<float> gradient() override { return gradient_; }

  double compute_gradient() override {
    double loss = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const float off = parameters_[i] - centre_[i];
      loss += 0.5 * static_cast<double>(off) * static_cast<double>(off);
      gradient_[i] = off + noise_ * uniform(random_);
    }
    return loss / static_cast<double>(parameters_.size());
  }

  void save(State& state) const override {
    std::ostringstream text;
    text << random_;
    state.values["learner.random"] = text.str();
  }
  Status load(const State& state) override {
    const Result<std::string> text = state.value<std::string>("learner.random");
    if (!text.ok()) return text.error();
    std::istringstream(*text) >> random_;
    return Done{};
  }

 private:
  std::mt19937_64 random_;
  float noise_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
  std::vector<float> centre_;
};

class QuadraticWorkload final : public Workload {
 public:
  explicit QuadraticWorkload(std::size_t elements, std::uint64_t seed = 1, float noise = 0.3F)
      : seed_(seed),
        noise_(noise),
        initial_(elements, 1.0F),
        layers_{{.name = "all", .offset = 0, .count = elements}} {}
  // With layers, of which the last one ends with the model.
  explicit QuadraticWorkload(LayerTable layers)
      : seed_(1),
        noise_(0.3F),
        initial_(layers.back().offset + layers.back().count, 1.0F),
        layers_(std::move(layers)) {}

  [[nodiscard]] const LayerTable& layers() const override { return layers_; }
  [[nodiscard]] std::span<const float> initial_parameters() const override { return initial_; }
  [[nodiscard]] std::unique_ptr<Learner> make_learner(std::size_t index) override {
    return std::make_unique<QuadraticLearner>(initial_.size(), seed_ * 100 + index, noise_);
  }
  // Accuracy rises to 1 as the parameters go to zero, near the mean of the replicas' centres.
  [[nodiscard]] Evaluation evaluate(std::span<const float> parameters,
                                    std::size_t /*samples*/) override {
    double squares = 0;
    for (const float p : parameters) squares += static_cast<double>(p) * static_cast<double>(p);
    const double loss = squares / static_cast<double>(parameters.size());
    return {.loss = loss, .accuracy = std::exp(-loss), .samples = 1};
  }

 private:
  std::uint64_t seed_;
  float noise_;
  std::vector<float> initial_;
  LayerTable layers_;
};

}  // namespace longhaul::testing
