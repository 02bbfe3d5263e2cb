#include "longhaul/sync/replica.h"

#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {

Replica::Replica(Setup setup, Learner& learner, HubClient& client, Workers& workers,
                 const Clock& clock)
    : setup_(std::move(setup)),
      learner_(learner),
      client_(client),
      workers_(workers),
      clock_(clock) {}

std::unique_ptr<Engine> Replica::make_engine(const Plan& plan) {
  EngineSetup setup = setup_.engine;
  setup.recipe.plan = plan;
  Exchange& exchange = setup_.exchange == nullptr ? client_ : *setup_.exchange;
  return std::make_unique<Engine>(setup, learner_.parameters(), exchange, workers_);
}

Status Replica::start(Deadline deadline) {
  const Result<Plan> plan = client_.first_plan(deadline);
  if (!plan.ok()) return plan.error();
  engine_ = make_engine(*plan);
  return Done{};
}

Status Replica::replace_state() {
  const State state = client_.take_snapshot();
  engine_ = make_engine(setup_.engine.recipe.plan);
  Status loaded = engine_->load_shared(state);
  if (!loaded.ok()) return loaded;
  ++restarts_;
  v1::Report report;
  report.set_step(engine_->steps_done());
  client_.report(report);
  return Done{};
}

void Replica::compute(StepFacts& facts) {
  const TimePoint begin = clock_.now();
  facts.loss = learner_.compute_gradient();
  if (setup_.step_time.count() > 0) {
    const TimePoint end = time_after(begin, setup_.step_time);
    facts.was_late = clock_.now() > end;
    pacer_.wait_until(end);
  }
  facts.computing = clock_.now() - begin;
}

Result<StepFacts> Replica::step(Deadline deadline) {
  LONGHAUL_CHECK(engine_ != nullptr);
  if (!engine_->is_half_done()) {
    const Result<Stance> stance = client_.stance(engine_->steps_done(), deadline);
    if (!stance.ok()) return stance.error();
    if (*stance == Stance::kRestart) {
      const Status replaced = replace_state();
      if (!replaced.ok()) return replaced.error();
      return step(deadline);
    }
    if (*stance == Stance::kFinish) return StepFacts{.stance = *stance, .loss = facts_.loss};
    facts_ = {.step = engine_->steps_done(), .stance = *stance, .loss = facts_.loss};
    if (*stance == Stance::kTakePart) {
      compute(facts_);
      engine_->submit(learner_.gradient());
    } else {
      engine_->sit_out();
    }
  }
  const TimePoint begin = clock_.now();
  const Status merged = engine_->merge_due(deadline);
  facts_.waiting += clock_.now() - begin;
  if (!merged.ok()) {
    // The state was replaced while it waited.
    if (merged.error().code != ErrorCode::kMismatch) return merged.error();
    const Status replaced = replace_state();
    if (!replaced.ok()) return replaced.error();
    return step(deadline);
  }
  tell(facts_);
  return facts_;
}

void Replica::tell(const StepFacts& facts) {
  v1::Report report;
  const std::uint64_t step = engine_->steps_done();
  report.set_step(step);
  report.set_loss(facts.loss);
  report.set_compute_s(facts.computing.count());
  const double all = (facts.computing + facts.waiting).count();
  if (all > 0) report.set_waiting_share(facts.waiting.count() / all);
  if (step % kDigestEvery == 0) report.set_digest(digest_of(engine_->shared()));
  client_.report(report);
}

Status Replica::finish(Deadline deadline) {
  Status drained = engine_->drain(deadline);
  if (drained.ok()) client_.leave();
  return drained;
}

}  // namespace longhaul
