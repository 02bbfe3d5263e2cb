#include "apps/longhaul_torch/evaluation_duty.h"

#include <cmath>
#include <limits>

namespace longhaul::apps {

void EvaluationDuty::after_step(std::uint64_t steps, std::span<const float> shared) {
  if (steps % settings_.every != 0 || !client_.is_evaluator()) return;
  if (!scorer_) scorer_ = std::make_unique<Scorer>(workload_, settings_.samples);
  scorer_->offer(steps, shared);
}

void EvaluationDuty::look_around() {
  for (const v1::Evaluation& told : client_.take_evaluations()) {
    last_ = told;
    news_.evaluation(told);
  }
  if (!scorer_) return;
  if (const auto score = scorer_->take()) tell(score->step, score->evaluation, false);
}

// A hub takes no score that is not finite, and a model that has diverged has no other.
void EvaluationDuty::tell(std::uint64_t steps, const Evaluation& score, bool is_closing) {
  v1::Evaluation evaluation;
  evaluation.set_step(steps);
  evaluation.set_loss(score.loss);
  evaluation.set_accuracy(score.accuracy);
  evaluation.set_samples(score.samples);
  evaluation.set_is_closing(is_closing);
  if (std::isfinite(score.loss)) client_.tell(evaluation);
  last_ = evaluation;
  news_.evaluation(evaluation);
}

void EvaluationDuty::close(std::uint64_t steps, std::span<const float> shared) {
  if (!client_.is_evaluator()) return;
  scorer_.reset();  // what it was scoring is of an earlier model
  tell(steps, workload_.evaluate(shared, std::numeric_limits<std::size_t>::max()), true);
}

}  // namespace longhaul::apps
