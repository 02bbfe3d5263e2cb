#include "longhaul/session/evaluation_duty.h"

#include <cmath>
#include <limits>

namespace longhaul {

void EvaluationDuty::after_step(std::uint64_t steps, std::span<const float> shared) {
  if (steps % settings_.every != 0 || !client_.is_evaluator()) return;
  if (!scorer_) scorer_ = std::make_unique<Scorer>(workload_, settings_.samples);
  scorer_->offer(steps, shared);
}

void EvaluationDuty::look_around() {
  for (const Score& told : client_.take_scores()) observer_.on_score(told);
  if (!scorer_) return;
  if (const auto score = scorer_->take()) tell(*score);
}

// A hub takes no score that is not finite, and a model that has diverged has no other.
void EvaluationDuty::tell(const Score& score) {
  if (std::isfinite(score.evaluation.loss)) client_.tell(score);
  observer_.on_score(score);
}

void EvaluationDuty::close(std::uint64_t steps, std::span<const float> shared) {
  if (!client_.is_evaluator()) return;
  scorer_.reset();  // what it was scoring is of an earlier model
  tell({.step = steps,
        .evaluation = workload_.evaluate(shared, std::numeric_limits<std::size_t>::max()),
        .is_closing = true});
}

}  // namespace longhaul
