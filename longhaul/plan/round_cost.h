// The cost of a round beside its bytes and the latency: threads that hand over, gRPC, the mean, a
// machine that others use too. Learned from how long the steps of a run really take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "longhaul/plan/conditions.h"
#include "longhaul/plan/round_sizes.h"
#include "longhaul/round/plan.h"

namespace longhaul {

// Learns what a round costs beside its bytes.
// A step is as long as the slower of two: computing and `work` spread over a period, and the loop
// with `wait` in it. So a measured step bounds both from above, and at least one of them is equal
// to its bound. Where rounds overlap, what is missing is taken for work, which delay does not hide;
// where one round is on its way at a time, for wait. A bound that was learned under one plan is
// kept under the next: a plan that was too fast to be true is not believed again.
class RoundCost {
 public:
  // A round of that step and size has closed under the plan in force: at this time, on any clock
  // that does not go back. Costs in `replicas` do not count.
  void add(std::uint64_t step, Seconds closed_at, const Plan& plan, const RoundSize& size,
           const Conditions& replicas);

  // In the loop of every replica.
  [[nodiscard]] Seconds wait() const { return wait_; }
  // The cost of every round, as if it were computing.
  [[nodiscard]] Seconds work() const { return work_; }
  // As measured under the plan in force; 0 while too little of it has passed.
  [[nodiscard]] Seconds step_time() const;
  // These conditions with that cost.
  [[nodiscard]] Conditions set_in(Conditions replicas) const;

 private:
  void begin(std::uint64_t step, Seconds now);
  void learn(Seconds mean_step, const RoundSize& size, const Conditions& replicas);

  Seconds wait_{};
  Seconds work_{};
  Plan plan_;
  std::size_t replicas_ = 0;
  // The stretch of time that is being measured.
  std::uint64_t first_step_ = 0;
  Seconds since_{};
  std::size_t rounds_ = 0;
  Seconds computing_{};         // of the slowest, summed over them
  bool is_settling_ = true;     // the plan has only just changed
  std::vector<Seconds> steps_;  // means of the last stretches, the oldest first
};

}  // namespace longhaul
