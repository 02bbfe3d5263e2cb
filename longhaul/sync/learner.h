// The model as the engine and the lab see it: flat parameters, a gradient of the next batch, an
// evaluation. The trainer implements it with libtorch; tests implement it with a few lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "longhaul/base/result.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/exchange/score.h"

namespace longhaul {

struct State;

// Told of consecutive elements of the model whose gradient is final.
using GradientReady = std::function<void(std::size_t first, std::size_t count)>;

// Callbacks of a learner that computes a gradient by layers. Each may be empty.
struct LayerWatch {
  // These elements are about to be read for the first time in the forward pass; they may be moved.
  std::function<void(std::size_t first, std::size_t count)> before_use{};
  // The loss is there; the backward pass begins. A learner without layers does not tell of it.
  std::function<void()> forward_done{};
  // Their gradient is final and nothing reads the elements any more; they may be moved.
  GradientReady ready{};
};

// One replica's copy of the model and its share of the data.
class Learner {
 public:
  virtual ~Learner() = default;

  // Where gradients are computed; the engine writes here.
  [[nodiscard]] virtual std::span<float> parameters() = 0;

  // Draws the next batch of this replica's data, fills gradient() with the mean gradient over it at
  // parameters(), and returns the loss. Does not depend on what other learners do, so several may
  // run at once. Where the local step is the caller's (EngineOptions::local_step) it makes that
  // step too: it moves parameters(), and nobody asks for gradient().
  virtual double compute_gradient() = 0;
  // The same, and calls `watch` on the way, on the calling thread. It tells of each element at most
  // once before its use and at most once when it is ready, in any order. The forward pass does
  // not read elements that before_use has not told of. When it returns, all gradients are final.
  virtual double compute_gradient_by_layers(const LayerWatch& watch) {
    if (watch.before_use) watch.before_use(0, parameters().size());
    return compute_gradient();
  }
  [[nodiscard]] virtual std::span<float> gradient() = 0;
  // Forward and backward passes that it took. A step is a tick of the run, and how much work a
  // replica does in it is its own affair.
  [[nodiscard]] virtual std::uint32_t passes() const { return 1; }

  // Its place in its data, and all that it draws at random. After load() a learner of the same
  // replica draws what this one would have drawn next; it may have been behind or ahead. Parameters
  // are not in it.
  virtual void save(State& state) const = 0;
  virtual Status load(const State& state) = 0;
};

// A model and its data, split over replicas.
class Workload {
 public:
  virtual ~Workload() = default;

  [[nodiscard]] virtual const LayerTable& layers() const = 0;  // in backward order
  [[nodiscard]] virtual std::span<const float> initial_parameters() const = 0;

  // Replica `index` of `replicas`; starts at initial_parameters().
  [[nodiscard]] virtual std::unique_ptr<Learner> make_learner(std::size_t index) = 0;

  // On held-out data: the first `samples` of a fixed order, or all of them where there are fewer.
  [[nodiscard]] virtual Evaluation evaluate(std::span<const float> parameters,
                                            std::size_t samples) = 0;
};

}  // namespace longhaul
