#include "longhaul/sync/merge_rule.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/codec/kernels.h"

namespace longhaul {
namespace {

// DD-EF-SGD and its special cases: nobody moves until the mean is there.
class OptimizerRule final : public MergeRule {
 public:
  OptimizerRule(const OptimizerSpec& spec, std::size_t elements) : optimizer_(spec, elements) {}

  void gradient_ready(const StepContext& /*now*/, std::span<const float> /*gradient*/,
                      std::span<float> /*parameters*/) override {}

  void merge(const StepContext& now, const Part& part, const Mean& mean,
             std::span<float> parameters) override {
    optimizer_.step(part.first, part.of(parameters), *mean.values, now.lr);
  }

  [[nodiscard]] std::span<const float> shared(std::span<const float> parameters) const override {
    return parameters;
  }

 private:
  Optimizer optimizer_;
};

// DGA: x = shared - Σ lr·g over the replica's own gradients whose mean is still on its way.
class OwnStepRule final : public MergeRule {
 public:
  explicit OwnStepRule(std::span<const float> initial) : shared_(initial.begin(), initial.end()) {}

  void gradient_ready(const StepContext& now, std::span<const float> gradient,
                      std::span<float> parameters) override {
    unmerged_.push_back(
        {.step = now.step, .lr = now.lr, .gradient = {gradient.begin(), gradient.end()}});
    kernels::add_scaled(gradient, static_cast<float>(-now.lr), parameters);
  }

  void merge(const StepContext& /*now*/, const Part& part, const Mean& mean,
             std::span<float> parameters) override {
    LONGHAUL_CHECK_EQ(part.count, shared_.size());
    LONGHAUL_CHECK(!unmerged_.empty() && unmerged_.front().step == mean.round.step);
    // With the learning rate of the step it was born in, or the swap would not be even.
    kernels::add_scaled(*mean.values, static_cast<float>(-unmerged_.front().lr), shared_);
    unmerged_.pop_front();
    // Formed anew instead of corrected: rounding does not add up over the run.
    std::ranges::copy(shared_, parameters.begin());
    for (const Own& own : unmerged_)
      kernels::add_scaled(own.gradient, static_cast<float>(-own.lr), parameters);
  }

  [[nodiscard]] std::span<const float> shared(
      std::span<const float> /*parameters*/) const override {
    return shared_;
  }

 private:
  struct Own {
    std::size_t step = 0;
    double lr = 0;
    std::vector<float> gradient;
  };
  std::vector<float> shared_;
  std::deque<Own> unmerged_;
};

}  // namespace

std::unique_ptr<MergeRule> make_merge_rule(Merge merge, const OptimizerSpec& optimizer,
                                           std::span<const float> initial) {
  if (merge == Merge::kOwnStep) return std::make_unique<OwnStepRule>(initial);
  return std::make_unique<OptimizerRule>(optimizer, initial.size());
}

}  // namespace longhaul
