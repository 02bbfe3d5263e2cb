#include "longhaul/sync/replica.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/digest.h"
#include "longhaul/sync/learner_step.h"

namespace longhaul {
namespace {

// Names in a checkpoint, beside those of the engine, the learner and the membership.
constexpr const char* kNextRound = "next_round";
constexpr const char* kLoss = "loss";
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Checks that a hub's plan fits this replica. With the caller's step the hub could not follow a
// model that steps with mean gradients: only the caller knows its optimizer.
Status check_hub_plan(const Plan& plan, const EngineOptions& options) {
  if (options.local_step == LocalStep::kCallers && !has_local_steps(plan.merge))
    return Error{ErrorCode::kMismatch, "merge rule " + std::string(name_of(plan.merge)) +
                                           " needs Longhaul's own optimizer over a hub"};
  return check_plan(plan, options);
}

}  // namespace

Replica::Replica(Options options, Learner& learner, Membership& membership, Exchange& exchange)
    : options_(std::move(options)),
      learner_(learner),
      membership_(membership),
      clock_(options_.clock),
      exchange_(exchange, clock_) {
  if (options_.step_time.count() <= 0) return;
  times_ = part_times(options_.engine);
  if (!times_.layers.empty()) times_ = scaled(std::move(times_), options_.step_time);
}

std::unique_ptr<Engine> Replica::make_engine(const Plan& plan) {
  EngineOptions options = options_.engine;
  options.recipe.plan = plan;
  return std::make_unique<Engine>(options, learner_.parameters(), exchange_, options_.workers);
}

Status Replica::start(Deadline deadline) {
  const std::optional<Plan> told = LONGHAUL_TRY(membership_.first_plan(deadline));
  const Plan plan = told.value_or(options_.engine.recipe.plan);
  Status fits = check_hub_plan(plan, options_.engine);
  if (!fits.ok()) return std::move(fits).error().within("plan of the hub");
  engine_ = make_engine(plan);
  // A replica that comes late has the hub's state, and nothing before it: no checkpoint can be of
  // the plan that was only guessed.
  return told ? Done{} : replace_state();
}

Status Replica::resume(const State& checkpoint, SentUpdates sent) {
  engine_ = make_engine(options_.engine.recipe.plan);
  LONGHAUL_TRY(engine_->load(checkpoint));
  Status fits = check_hub_plan(engine_->plan(), options_.engine);
  if (!fits.ok()) return std::move(fits).error().within("checkpoint");
  sent_ = std::move(sent);
  sent_.erase(sent_.begin(), sent_.lower_bound({.step = engine_->steps_done()}));
  const auto loss = checkpoint.value<double>(kLoss);
  facts_ = {.step = engine_->steps_done(), .loss = loss.ok() ? *loss : kUnknown};
  ends_in_forward_ = is_by_layer() && engine_->is_half_done();
  return learner_.load(checkpoint);
}

State Replica::save() const {
  State state = engine_->save();
  learner_.save(state);
  const std::deque<RoundId>& in_flight = engine_->in_flight();
  const RoundId next = in_flight.empty() ? engine_->next_rounds().front() : in_flight.front();
  state.values[kNextRound] = std::vector<std::uint64_t>{next.step, next.part};
  if (std::isfinite(facts_.loss)) state.values[kLoss] = facts_.loss;
  membership_.save(state);
  return state;
}

Status Replica::replace_state() {
  Replaced replaced{.from_step = engine_->steps_done(), .updates = membership_.updates_in_flight()};
  for (const float held_back : engine_->residual())
    replaced.residual += static_cast<double>(std::abs(held_back));
  const State state = membership_.take_snapshot();
  sent_.clear();
  ends_in_forward_ = false;
  unused_parts_.reset();
  engine_ = make_engine(options_.engine.recipe.plan);
  LONGHAUL_TRY(engine_->load_shared(state));
  ++restarts_;
  replaced.to_step = engine_->steps_done();
  replaced_ = replaced;
  membership_.report({.step = engine_->steps_done()});
  return Done{};
}

void Replica::compute(StepFacts& facts) {
  if (is_by_layer() && is_paced()) return compute_by_layer(facts);
  // After a forward pass that ended the last step by layer, only the rest of this one is left.
  if (!unused_parts_) work_.begin(clock_.now());
  const Seconds left = options_.step_time - (unused_parts_ ? worked_ : Seconds(0));
  unused_parts_.reset();
  // Parts travel while others are computed. With a pace nothing is sent before it is over, as the
  // machine that it stands in for is slower.
  const bool is_by_part = options_.engine.local_step == LocalStep::kOurs && engine_->parts() > 1 &&
                          options_.step_time.count() == 0;
  facts.loss = is_by_part ? compute_and_submit(learner_, *engine_) : learner_.compute_gradient();
  facts.passes = learner_.passes();
  TimePoint end = clock_.now();
  if (options_.advance) {
    options_.advance(left);
    end = clock_.now();
  } else if (options_.step_time.count() > 0) {
    const TimePoint due = work_.due(options_.step_time);
    facts.was_late = end > due;
    pacer_.wait_until(due);
    end = std::max(end, due);  // the machine that it stands in for would not wake up late
  }
  work_.has_gradient(end);
  facts.computing = work_.computing();
  facts.computed = end;
}

Status Replica::submit(Stance stance) {
  const bool is_done = !sent_.empty() && engine_->steps_done() <= sent_.rbegin()->first.step;
  if (!is_done) sent_.clear();
  facts_ = {.step = engine_->steps_done(),
            .stance = is_done ? Stance::kSitOut : stance,
            .loss = facts_.loss};
  if (facts_.stance == Stance::kTakePart) {
    compute(facts_);
    if (options_.engine.local_step == LocalStep::kCallers) {
      engine_->submit_moved();
    } else if (!engine_->is_half_done()) {
      engine_->submit(learner_.gradient());
    }
    return Done{};
  }
  unused_parts_.reset();
  work_.forget_last();
  facts_.computed = clock_.now();
  work_.has_gradient(facts_.computed);
  if (is_done) return engine_->submit_again(sent_);
  engine_->sit_out();
  return Done{};
}

Result<Stance> Replica::begin_step(Deadline deadline) {
  LONGHAUL_CHECK(engine_ != nullptr);
  if (ends_in_forward_) LONGHAUL_TRY(leave_open_step(deadline));
  while (!engine_->is_half_done()) {
    const Stance stance = LONGHAUL_TRY(
        membership_.stance(engine_->steps_done(), engine_->next_rounds().back(), deadline));
    if (stance == Stance::kFinish) return stance;
    LONGHAUL_TRY(stance == Stance::kRestart ? replace_state() : submit(stance));
  }
  return facts_.stance;
}

Result<StepFacts> Replica::end_step(Deadline deadline) {
  const bool ends_later = is_by_layer() && facts_.stance == Stance::kTakePart && !ends_in_forward_;
  ends_in_forward_ = ends_later;
  const Status merged = ends_later ? Status(Done{}) : engine_->end_step(deadline);
  facts_.waiting += exchange_.take_waited() + std::exchange(waited_, Seconds{});
  if (!merged.ok()) {
    // The state was replaced while it waited.
    if (merged.error().code != ErrorCode::kMismatch) return merged.error();
    LONGHAUL_TRY(replace_state());
    return StepFacts{.stance = Stance::kRestart, .loss = facts_.loss};
  }
  facts_.sent = exchange_.take_sent();
  facts_.merged = exchange_.take_merged();
  work_.count(facts_.computing, facts_.waiting, engine_->plan().period_steps);
  if (!ends_later) tell(facts_);
  work_.end(clock_.now(), facts_.waiting);
  facts_.replaced = std::exchange(replaced_, std::nullopt);
  return facts_;
}

Result<StepFacts> Replica::step(Deadline deadline) {
  for (;;) {
    const Stance stance = LONGHAUL_TRY(begin_step(deadline));
    if (stance == Stance::kFinish) return at_the_end();
    Result<StepFacts> facts = end_step(deadline);
    if (!facts.ok() || facts->stance != Stance::kRestart) return facts;
  }
}

StepFacts Replica::at_the_end() {
  return {.stance = Stance::kFinish,
          .loss = facts_.loss,
          .replaced = std::exchange(replaced_, std::nullopt)};
}

void Replica::tell(const StepFacts& facts) {
  StepReport report{.step = engine_->steps_done(),
                    .loss = facts.loss,
                    .computing = facts.computing,
                    .waiting_share = work_.waiting_share(),
                    .passes = facts.passes};
  if (report.step % kDigestEvery == 0) report.digest = digest_of(engine_->shared());
  membership_.report(report);
}

Status Replica::settle(Deadline deadline) {
  if (ends_in_forward_) {
    LONGHAUL_TRY(engine_->end_step(deadline));
    ends_in_forward_ = false;
  }
  for (std::size_t i = 0; i < engine_->in_flight().size();) {
    Status here = membership_.await(engine_->in_flight()[i], deadline);
    if (here.ok()) {
      ++i;
      continue;
    }
    if (here.error().code != ErrorCode::kMismatch) return here;
    LONGHAUL_TRY(replace_state());
    i = 0;
  }
  return Done{};
}

// A state that is given meanwhile is of the end too: this replica has done the last step, and the
// hub's model is never behind.
Result<StepFacts> Replica::finish(Deadline deadline) {
  for (;;) {
    const Status ended = ends_in_forward_ ? engine_->end_step(deadline) : Status(Done{});
    if (ended.ok()) ends_in_forward_ = false;
    const Status drained = ended.ok() ? engine_->drain(deadline) : ended;
    if (drained.ok()) return at_the_end();
    if (drained.error().code != ErrorCode::kMismatch) return drained.error();
    LONGHAUL_TRY(replace_state());
  }
}

}  // namespace longhaul
