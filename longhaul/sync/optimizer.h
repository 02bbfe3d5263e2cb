// Optimizers on flat parameters, part by part: the same arithmetic on every machine and for every
// number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/sync/step_kernels.h"

namespace longhaul {

struct State;

// The optimizers that replicas and means can have.
enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kNesterov, kAdamW };

// Can its steps be computed ahead, as Merge::kAhead needs?
constexpr bool can_be_foreseen(OptimizerKind kind) { return kind != OptimizerKind::kAdamW; }

// An optimizer and its constants.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kMomentum;
  float momentum = 0.9F;        // β1 of AdamW
  float second_moment = 0.95F;  // β2 of AdamW
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;  // decoupled in AdamW, added to the gradient otherwise
};

// Values beyond it are as good as infinite, and sums of residuals stay far from overflow below it.
inline constexpr float kAbsurd = 1e30F;

class Optimizer {
 public:
  Optimizer(const OptimizerOptions& spec, std::size_t elements);

  // False if a gradient of that magnitude could move a parameter of the part that starts at `first`
  // by an absurd amount; true counts as the step with it: for optimizers whose gradients nobody has
  // checked elsewhere.
  bool accept(std::size_t first, float largest_gradient, double lr);

  // Begins a step of the part that starts at `first`, which is made in pieces; the gradient will be
  // multiplied by the scale. A part is the same range of elements in every step.
  kernels::OptimizerStep begin(std::size_t first, double lr, float gradient_scale = 1.0F);

  // Moves the `parameters` that begin at element `first` of the model against `gradient`. Several
  // threads may step different elements at once.
  void step(const kernels::OptimizerStep& step, std::size_t first, std::span<float> parameters,
            std::span<const float> gradient);
  // Where that would move them, without moving anything.
  void preview(const kernels::OptimizerStep& step, std::size_t first, std::span<float> parameters,
               std::span<const float> gradient) const;

  // A whole step of the part that starts at `first`.
  void step(std::size_t first, std::span<float> parameters, std::span<const float> gradient,
            double lr) {
    step(begin(first, lr), first, parameters, gradient);
  }

  // All that it remembers of the elements, in place: velocities; for AdamW first, then second
  // moments. Empty before the first step: an optimizer that is never asked needs no memory.
  [[nodiscard]] std::span<float> state() { return state_; }

  // From now on the parts are those that start there. Each has made as many steps as the part that
  // its first element was in.
  void regroup(std::span<const std::size_t> firsts);

  // Forgets everything.
  void clear();

  void save(State& state, std::string_view name = "optimizer") const;
  // On an error nothing has changed.
  Status load(const State& state, std::string_view name = "optimizer");

 private:
  void allocate();
  void apply(const kernels::OptimizerStep& step, std::span<float> first_state,
             std::span<float> second_state, std::span<float> parameters,
             std::span<const float> gradient) const;

  OptimizerOptions spec_;
  std::size_t elements_;
  std::vector<float> state_;
  std::map<std::size_t, float> steps_;  // of each part, by its first element; for AdamW
  // No velocity or first moment of a part is larger; see accept(). Parts that are not in the map
  // have the one of the whole model when it was loaded.
  std::map<std::size_t, double> largest_states_;
  double largest_loaded_ = 0;
};

}  // namespace longhaul
