#include "longhaul/hub/evaluations.h"

#include <cmath>

namespace longhaul {
namespace {

constexpr std::size_t kSmoothed = 3;  // evaluations

Frame duty(bool is_on) {
  Frame frame;
  frame.mutable_evaluate()->set_is_on(is_on);
  return frame;
}

}  // namespace

void Evaluations::name_evaluator(Roster& roster) {
  if (!is_on_ || changes_seen_ == roster.changes()) return;
  changes_seen_ = roster.changes();
  if (last_ && last_->is_closing()) return;
  Peer* lowest = nullptr;
  for (const auto& [control, peer] : roster.peers()) {
    if (!peer->progress.is_enrolled) continue;
    if (lowest == nullptr || peer->slot() < lowest->slot()) lowest = peer.get();
  }
  if (lowest == evaluator_) return;
  if (evaluator_ != nullptr) (void)evaluator_->send(duty(false));
  evaluator_ = lowest;
  if (evaluator_ == nullptr) return;
  roster.of(*evaluator_).was_evaluator = true;
  (void)evaluator_->send(duty(true));
}

void Evaluations::forget(const Peer& peer) {
  if (evaluator_ == &peer) evaluator_ = nullptr;
}

bool Evaluations::is_possible(const v1::Evaluation& evaluation, std::uint64_t reached,
                              bool may_close) {
  return std::isfinite(evaluation.loss()) && evaluation.accuracy() >= 0 &&
         evaluation.accuracy() <= 1 && evaluation.samples() > 0 && evaluation.step() <= reached &&
         (may_close || !evaluation.is_closing());
}

bool Evaluations::take(const v1::Evaluation& evaluation, Seconds time) {
  const bool is_newer = !last_ || evaluation.step() > last_->step() ||
                        (evaluation.is_closing() && !last_->is_closing());
  if (!is_newer) return false;
  last_ = evaluation;
  if (evaluation.is_closing()) return true;
  recent_.push_back({.step = evaluation.step(),
                     .time = time,
                     .loss = evaluation.loss(),
                     .accuracy = evaluation.accuracy()});
  if (recent_.size() > kSmoothed) recent_.erase(recent_.begin());
  return true;
}

std::optional<double> Evaluations::smoothed() const {
  const std::vector<double> all = smoothed_metric(target_, recent_);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

}  // namespace longhaul
