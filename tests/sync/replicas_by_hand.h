// Learners with optimizers of their own and no engine, for methods that tests write down plainly.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "longhaul/sync/engine.h"
#include "longhaul/sync/learner.h"

namespace longhaul::testing {

// Each takes steps of its own; tests do what happens between them.
class ReplicasByHand {
 public:
  ReplicasByHand(Workload& workload, std::size_t replicas, const EngineOptions& options)
      : lr_(options.lr.peak) {
    for (std::size_t i = 0; i < replicas; ++i) {
      learners.push_back(workload.make_learner(i));
      optimizers_.emplace_back(options.optimizer, workload.initial_parameters().size());
    }
  }
  void step() {
    for (std::size_t i = 0; i < learners.size(); ++i) {
      learners[i]->compute_gradient();
      optimizers_[i].step(0, learners[i]->parameters(), learners[i]->gradient(), lr_);
    }
  }
  [[nodiscard]] std::vector<float> mean() const {
    std::vector<float> sum(learners[0]->parameters().size());
    for (const auto& learner : learners) {
      for (std::size_t j = 0; j < sum.size(); ++j)
        sum[j] += learner->parameters()[j] / static_cast<float>(learners.size());
    }
    return sum;
  }

  std::vector<std::unique_ptr<Learner>> learners;

 private:
  std::vector<Optimizer> optimizers_;
  double lr_;
};

inline void expect_near(std::span<const float> got, std::span<const float> expected) {
  for (std::size_t j = 0; j < got.size(); ++j) ASSERT_NEAR(got[j], expected[j], 1e-5) << j;
}

}  // namespace longhaul::testing
