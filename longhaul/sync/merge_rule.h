// What a replica does with its own gradient at once, and with the mean of a round when it is due.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "longhaul/exchange/exchange.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {

struct StepContext {
  std::size_t step = 0;
  double lr = 0;
};

// Consecutive elements of the model that are exchanged together.
struct Part {
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] std::span<float> of(std::span<float> all) const {
    return all.subspan(first, count);
  }
  [[nodiscard]] std::span<const float> of(std::span<const float> all) const {
    return all.subspan(first, count);
  }
};

class MergeRule {
 public:
  virtual ~MergeRule() = default;

  // The gradient of this step is known. `parameters` is where it was computed; the rule may move
  // it.
  virtual void gradient_ready(const StepContext& now, std::span<const float> gradient,
                              std::span<float> parameters) = 0;

  // The mean of a round is due; rounds of a part come in the order they were born in.
  virtual void merge(const StepContext& now, const Part& part, const Mean& mean,
                     std::span<float> parameters) = 0;

  // The model that is the same on all replicas, bit for bit; `parameters` itself for rules that
  // never leave it.
  [[nodiscard]] virtual std::span<const float> shared(std::span<const float> parameters) const = 0;
};

std::unique_ptr<MergeRule> make_merge_rule(Merge merge, const OptimizerSpec& optimizer,
                                           std::span<const float> initial);

}  // namespace longhaul
