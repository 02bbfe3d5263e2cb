#include "longhaul/plan/round_cost.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/plan/step_time.h"

namespace longhaul {
namespace {

constexpr Seconds kStretch{1.0};
constexpr std::size_t kLeastRounds = 8;  // of a stretch
constexpr std::size_t kStretches = 5;    // the median of these counts: one stall says nothing

Seconds or_zero(Seconds time) { return std::max(time, Seconds(0)); }

}  // namespace

void RoundCost::begin(std::uint64_t step, Seconds now) {
  first_step_ = step;
  since_ = now;
  rounds_ = 0;
  computing_ = Seconds(0);
}

void RoundCost::add(std::uint64_t step, Seconds closed_at, const Plan& plan, const RoundSize& size,
                    const Conditions& replicas) {
  if (replicas.empty()) return;
  if (plan != plan_ || replicas.size() != replicas_) {
    plan_ = plan;
    replicas_ = replicas.size();
    steps_.clear();
    is_settling_ = true;
    return begin(step, closed_at);
  }
  ++rounds_;
  computing_ += std::ranges::max(replicas, {}, &ReplicaConditions::compute).compute;
  if (rounds_ < kLeastRounds || closed_at - since_ < kStretch) return;
  if (step == first_step_) return;  // many parts, one step
  const Seconds mean_step = (closed_at - since_) / static_cast<double>(step - first_step_);
  if (!std::exchange(is_settling_, false)) learn(mean_step, size, replicas);
  begin(step, closed_at);
}

void RoundCost::learn(Seconds mean_step, const RoundSize& size, const Conditions& replicas) {
  if (steps_.size() == kStretches) steps_.erase(steps_.begin());
  steps_.push_back(mean_step);
  if (!plan_.schedule.empty()) return;  // parts of a model: their cost is another
  const Seconds step = step_time();
  // As fast as they were all the time, not just now.
  Conditions links = RoundCost().set_in(replicas);
  const double slower = computing_ / static_cast<double>(rounds_) / Paces(links).computing();
  for (ReplicaConditions& link : links) link.compute *= slower;
  const Paces paces(links);
  const Loop loop(plan_.delay_steps, plan_.period_steps);
  const Pace pace = paces.of(size, plan_.period_steps);
  const Seconds most_work = or_zero((step - paces.computing()) * plan_.period_steps);
  const Seconds most_wait = or_zero(step * loop.steps - pace.length(loop));
  work_ = std::min(work_, most_work);
  wait_ = std::min(wait_, most_wait);
  const Paces with_cost(set_in(links));
  if (with_cost.of(size, plan_.period_steps).at(loop) >= step) return;
  const bool do_rounds_overlap = plan_.delay_steps >= plan_.period_steps;
  (do_rounds_overlap ? work_ : wait_) = do_rounds_overlap ? most_work : most_wait;
}

Seconds RoundCost::step_time() const {
  if (steps_.empty()) return {};
  std::vector<Seconds> steps = steps_;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

Conditions RoundCost::set_in(Conditions replicas) const {
  for (ReplicaConditions& replica : replicas) {
    replica.round_wait = wait_;
    replica.round_work = work_;
  }
  return replicas;
}

}  // namespace longhaul
