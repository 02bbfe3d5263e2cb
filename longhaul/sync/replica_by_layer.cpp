// A replica whose parts travel on their own: its step ends in the forward pass of the next one.
#include <algorithm>
#include <optional>

#include "longhaul/base/check.h"
#include "longhaul/sync/learner_step.h"
#include "longhaul/sync/replica.h"

namespace longhaul {
namespace {

constexpr Seconds kPatience{0.2};  // of a wait in a forward pass, before goes_on() is asked again

}  // namespace

bool Replica::is_by_layer() const {
  const Recipe& recipe = options_.engine.recipe;
  return (recipe.is_by_layer || recipe.may_go_by_layer) && engine_->parts() > 1 &&
         options_.engine.local_step == LocalStep::kOurs;
}

// Waits until so much more work of the backward pass is done.
void Replica::work(Seconds time, StepFacts& facts) {
  worked_ += time;
  if (options_.advance) return options_.advance(time);
  const TimePoint due = work_.due(worked_);
  facts.was_late = facts.was_late || clock_.now() > due;
  pacer_.wait_until(due);
}

void Replica::begin_forward() {
  work_.begin(clock_.now());
  worked_ = waited_ = Seconds(0);
  unused_parts_ = static_cast<std::uint32_t>(engine_->parts());
}

// A mean that is there is merged at once, and for another one this waits at its time in the forward
// pass. So the machine can begin with the gradient within the time of the pass that it stands for.
Status Replica::merge_at_its_time(std::uint32_t part, Deadline deadline) {
  if (!options_.advance) {
    Status merged = engine_->merge_before(part, clock_.now());
    if (merged.ok() || merged.error().code != ErrorCode::kDeadline) return merged;
    pacer_.wait_until(work_.due(worked_));
  }
  return engine_->merge_before(part, deadline);
}

// In the reverse order of the parts. If the step before is open, each part is merged first.
Status Replica::pass_forward(Deadline deadline) {
  for (; *unused_parts_ > 0; --*unused_parts_) {
    const std::uint32_t part = *unused_parts_ - 1;
    if (ends_in_forward_) {
      Status merged = merge_at_its_time(part, deadline);
      note_wait();
      if (!merged.ok()) return merged;
    }
    worked_ += times_.layers[part].forward;
    if (options_.advance) options_.advance(times_.layers[part].forward);
  }
  return Done{};
}

Status Replica::end_in_forward(Deadline deadline) {
  if (!unused_parts_) begin_forward();
  Status merged = pass_forward(deadline);
  if (merged.ok()) return end_open_step(deadline);
  return merged.error().code == ErrorCode::kMismatch ? replace_state() : merged;
}

void Replica::compute_by_layer(StepFacts& facts) {
  if (!unused_parts_) begin_forward();
  LONGHAUL_CHECK(pass_forward(Deadline::max()).ok());  // no step is open
  unused_parts_.reset();
  facts.loss = learner_.compute_gradient();
  engine_->begin_step();
  for (std::uint32_t part = 0; part < engine_->parts(); ++part) {
    work(times_.layers[part].backward, facts);
    engine_->ready(part, engine_->part(part).of(learner_.gradient()));
  }
  facts.passes = learner_.passes();
  facts.computed = clock_.now();
  work_.has_gradient(facts.computed);
  facts.computing = work_.computing();
}

void Replica::note_wait() {
  const Seconds waited = exchange_.take_waited();
  work_.leave_out(waited);
  waited_ += waited;
}

Status Replica::end_open_step(Deadline deadline) {
  Status ended = engine_->end_step(deadline);
  note_wait();
  if (ended.ok()) {
    ends_in_forward_ = false;
    tell(facts_);
  } else if (ended.error().code == ErrorCode::kMismatch) {
    return replace_state();
  }
  return ended;
}

// A mean that is due is missing, so the round after it cannot have closed without this replica. If
// that mean is being formed in the gradient itself, no other gradient can be computed yet.
bool Replica::is_ahead_of_means() {
  if (options_.engine.averages_in_place && !has_local_steps(engine_->plan().merge)) return false;
  const std::uint64_t step = engine_->steps_done();
  const auto delay = static_cast<std::uint64_t>(engine_->plan().delay_steps);
  const auto& rounds = engine_->in_flight();
  const auto due = std::find_if(rounds.rbegin(), rounds.rend(),
                                [&](const RoundId& round) { return round.step + delay <= step; });
  if (due == rounds.rend() || membership_.await(*due, clock_.now()).ok()) return false;
  const RoundId next{.step = step + 1, .part = static_cast<std::uint32_t>(engine_->parts() - 1)};
  const Result<Stance> stance = membership_.stance(step + 1, next, clock_.now());
  return stance.ok() && *stance == Stance::kTakePart;
}

Status Replica::leave_open_step(Deadline deadline) {
  if (is_paced()) return end_in_forward(deadline);
  return is_ahead_of_means() ? compute_and_merge(deadline) : end_open_step(deadline);
}

// Computes the next gradient, and merges each part of the open step just before it is used.
Status Replica::compute_and_merge(Deadline deadline) {
  State before;
  learner_.save(before);
  work_.begin(clock_.now());
  waited_ = Seconds(0);
  Status merged = Done{};
  const auto merge = [&](const std::function<Status(Deadline)>& what) {
    if (!merged.ok()) return;
    merged = what(deadline);
    while (!merged.ok() && merged.error().code == ErrorCode::kDeadline && options_.goes_on &&
           options_.goes_on())
      merged = what(time_after(clock_.now(), kPatience));
    note_wait();
  };
  const auto end_step = [&] {
    merge([&](Deadline limit) { return engine_->end_step(limit); });
    if (!merged.ok()) return false;
    ends_in_forward_ = false;
    tell(facts_);
    facts_ = {.step = engine_->steps_done(), .stance = Stance::kTakePart, .loss = facts_.loss};
    return true;
  };
  const double loss = compute_and_submit(
      learner_, *engine_,
      [&](std::uint32_t part) {
        merge([&](Deadline limit) { return engine_->merge_before(part, limit); });
      },
      end_step);
  if (!merged.ok()) {
    LONGHAUL_TRY(learner_.load(before));  // the same batch comes again
    return merged.error().code == ErrorCode::kMismatch ? replace_state() : merged;
  }
  facts_.loss = loss;
  facts_.passes = learner_.passes();
  facts_.computed = clock_.now();
  work_.has_gradient(facts_.computed);
  facts_.computing = work_.computing();
  return Done{};
}

}  // namespace longhaul
