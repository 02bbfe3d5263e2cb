#include "longhaul/hub/run_end.h"

#include <utility>

namespace longhaul {

void RunEnd::expect(std::uint64_t steps, v1::FinishCause cause) {
  cause_ = cause;
  if (steps > 0) last_step_ = steps - 1;
}

void RunEnd::ask(v1::FinishCause cause) {
  is_stopping_ = is_stopping_ || cause == v1::CAUSE_STOPPED;
  if (cause != v1::CAUSE_TARGET) is_asked_ = true;
}

void RunEnd::postpone(v1::FinishCause cause) {
  if (!postponed_) postponed_ = cause;
}

std::optional<v1::FinishCause> RunEnd::take_postponed() {
  return std::exchange(postponed_, std::nullopt);
}

void RunEnd::set(std::optional<std::uint64_t> last_step, v1::FinishCause cause) {
  if (last_step) last_step_ = last_step;
  cause_ = cause;
}

void RunEnd::tell(Peer& peer) const {
  if (!last_step_ && !is_asked_) return;
  Frame frame;
  frame.mutable_finish()->set_last_step(last_step_.value_or(0));
  frame.mutable_finish()->set_cause(cause_);
  (void)peer.send(std::move(frame));
}

}  // namespace longhaul
