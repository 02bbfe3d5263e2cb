// Who scores the shared model, what comes of it, and how the end of a run is announced.
#include <cmath>

#include "longhaul/base/units.h"
#include "longhaul/hub/hub_core.h"

namespace longhaul {
namespace {

constexpr std::size_t kSmoothed = 3;  // evaluations

Frame duty(bool is_on) {
  Frame frame;
  frame.mutable_evaluate()->set_is_on(is_on);
  return frame;
}

}  // namespace

// The member of the lowest slot, until the last model is scored.
void HubCore::name_evaluator() {
  if (is_evaluator_known_ || !options_.evaluates || !training_) return;
  is_evaluator_known_ = true;
  if (evaluation_ && evaluation_->is_closing()) return;
  Session* lowest = nullptr;
  for (const auto& [id, session] : sessions_) {
    if (!session->progress.is_enrolled) continue;
    if (lowest == nullptr || session->identity().slot < lowest->identity().slot)
      lowest = session.get();
  }
  if (lowest == evaluator_) return;
  if (evaluator_ != nullptr) (void)evaluator_->send(duty(false));
  evaluator_ = lowest;
  if (evaluator_ == nullptr) return;
  replica_of(*evaluator_).was_evaluator = true;
  (void)evaluator_->send(duty(true));
}

// A replica tells it: only what can be is taken.
bool HubCore::is_possible(const v1::Evaluation& evaluation) const {
  const bool is_reached = evaluation.step() <= training_->standing().step;
  const bool is_end = is_over() && evaluation.step() == *last_step_ + 1;
  return std::isfinite(evaluation.loss()) && evaluation.accuracy() >= 0 &&
         evaluation.accuracy() <= 1 && evaluation.samples() > 0 && is_reached &&
         (is_end || !evaluation.is_closing());
}

// A replica whose duty has passed to another may still tell what it was scoring.
void HubCore::on_evaluation(Session& session, const v1::Evaluation& evaluation) {
  if (!training_ || !replica_of(session).was_evaluator) return;
  if (!is_possible(evaluation)) return reject(session, "an evaluation that cannot be");
  const bool is_newer = !evaluation_ || evaluation.step() > evaluation_->step() ||
                        (evaluation.is_closing() && !evaluation_->is_closing());
  if (!is_newer) return;
  evaluation_ = evaluation;
  Frame frame;
  *frame.mutable_evaluation() = evaluation;
  for (const auto& [id, other] : sessions_) {
    if (other.get() != &session) (void)other->send(frame);
  }
  if (watcher_) watcher_({.outcome = {}, .time = now_, .evaluation = evaluation});
  if (evaluation.is_closing()) return;
  evaluations_.push_back({.step = evaluation.step(),
                          .time = started_ ? Seconds(now_ - *started_) : Seconds(0),
                          .loss = evaluation.loss(),
                          .accuracy = evaluation.accuracy()});
  if (evaluations_.size() > kSmoothed) evaluations_.erase(evaluations_.begin());
  end_at_target();
}

void HubCore::end_at_target() {
  if (!options_.ends_at_target || !target_reached(options_.target, evaluations_)) return;
  finish(v1::CAUSE_TARGET);
}

bool HubCore::is_over() const {
  return training_ && last_step_ && training_->book().next().step > *last_step_;
}

void HubCore::announce_end() {
  if (std::exchange(is_announced_, true)) return;
  const std::string steps = std::to_string(*last_step_ + 1);
  const std::string all = std::to_string(options_.training.engine.lr.steps);
  switch (finish_cause_) {
    case v1::CAUSE_STOPPED:
      return log_.info("the run is stopped after " + steps + " of " + all + " steps");
    case v1::CAUSE_TARGET:
      return log_.info(
          "the run is done: it reached its target, " + name_of(options_.target.metric) + ' ' +
          formatted("%.4g", options_.target.value) + ", after " + steps + " of " + all + " steps");
    default:
      return log_.info("the run is done: all " + steps + " steps");
  }
}

}  // namespace longhaul
