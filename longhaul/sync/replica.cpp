#include "longhaul/sync/replica.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/sync/learner_step.h"
#include "longhaul/sync/saved.h"

namespace longhaul {
namespace {

// Names in a checkpoint, beside those of the engine and the learner.
constexpr const char* kFirstStep = "first_step";
constexpr const char* kNextRound = "next_round";
constexpr const char* kLoss = "loss";
constexpr const char* kRun = "run";
constexpr const char* kSent = "sent";
constexpr const char* kAttendance = "attendance";
constexpr const char* kStep = "step";  // of the engine
constexpr const char* kUpdate = "update";
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Step and part of each.
void save_rounds(const char* name, const std::vector<RoundId>& rounds, State& state) {
  std::vector<std::uint64_t> numbers;
  for (const RoundId& round : rounds) numbers.insert(numbers.end(), {round.step, round.part});
  state.values[name] = numbers;
}

Result<std::vector<RoundId>> rounds_in(const State& state, const char* name) {
  const auto numbers = state.value<std::vector<std::uint64_t>>(name);
  if (!numbers.ok()) return numbers.error();
  std::vector<RoundId> rounds;
  for (std::size_t i = 0; i + 1 < numbers->size(); i += 2) {
    if ((*numbers)[i + 1] > std::numeric_limits<std::uint32_t>::max()) break;
    rounds.push_back(
        {.step = (*numbers)[i], .part = static_cast<std::uint32_t>((*numbers)[i + 1])});
  }
  if (2 * rounds.size() == numbers->size()) return rounds;
  return Error{ErrorCode::kMismatch, std::string(name) + ": not a step and a part of each round"};
}

// What a hub's plan must be for this replica. With the caller's step the hub could not follow a
// model that steps with mean gradients: only the caller knows its optimizer.
Status check_hub_plan(const Plan& plan, const EngineSetup& setup) {
  if (setup.local_step == LocalStep::kCallers && !has_local_steps(plan.merge))
    return Error{ErrorCode::kMismatch, "merge rule " + std::string(name_of(plan.merge)) +
                                           " needs Longhaul's own optimizer over a hub"};
  return check_plan(plan, setup);
}

}  // namespace

Replica::Replica(Setup setup, Learner& learner, HubClient& client, Workers& workers,
                 const Clock& clock)
    : setup_(std::move(setup)),
      learner_(learner),
      client_(client),
      workers_(workers),
      clock_(clock),
      exchange_(setup_.exchange == nullptr ? client : *setup_.exchange, clock) {}

std::unique_ptr<Engine> Replica::make_engine(const Plan& plan) {
  EngineSetup setup = setup_.engine;
  setup.recipe.plan = plan;
  return std::make_unique<Engine>(setup, learner_.parameters(), exchange_, workers_);
}

Status Replica::start(Deadline deadline) {
  const Result<std::optional<Plan>> told = client_.first_plan(deadline);
  if (!told.ok()) return told.error();
  const Plan plan = told->value_or(setup_.engine.recipe.plan);
  Status fits = check_hub_plan(plan, setup_.engine);
  if (!fits.ok()) return std::move(fits).error().within("plan of the hub");
  engine_ = make_engine(plan);
  // Who comes late has the hub's state, and nothing before it: no checkpoint can be of the plan
  // that was only guessed.
  return *told ? Done{} : replace_state();
}

Status Replica::resume(const State& checkpoint, SentUpdates sent) {
  const auto first_step = checkpoint.value<std::uint64_t>(kFirstStep);
  if (!first_step.ok()) return first_step.error();
  engine_ = make_engine(setup_.engine.recipe.plan);
  Status loaded = engine_->load(checkpoint);
  if (!loaded.ok()) return loaded;
  Status fits = check_hub_plan(engine_->plan(), setup_.engine);
  if (!fits.ok()) return std::move(fits).error().within("checkpoint");
  first_step_ = *first_step;
  sent_ = std::move(sent);
  sent_.erase(sent_.begin(), sent_.lower_bound({.step = engine_->steps_done()}));
  const auto loss = checkpoint.value<double>(kLoss);
  facts_ = {.step = engine_->steps_done(), .loss = loss.ok() ? *loss : kUnknown};
  return learner_.load(checkpoint);
}

State Replica::save() const {
  State state = engine_->save();
  learner_.save(state);
  state.values[kRun] = client_.run();
  state.values[kFirstStep] = first_step_;
  const std::deque<RoundId>& in_flight = engine_->in_flight();
  save_rounds(kNextRound, {in_flight.empty() ? engine_->next_rounds().front() : in_flight.front()},
              state);
  if (std::isfinite(facts_.loss)) state.values[kLoss] = facts_.loss;
  std::vector<RoundId> sent;
  for (const auto& [round, update] : client_.unmerged()) {
    sent.push_back(round);
    state.blobs[name_in_round(kUpdate, round)] = *update.payload.bytes();
  }
  save_rounds(kSent, sent, state);
  const Attendance attendance =
      client_.attendance().value_or(Attendance{.since = engine_->steps_done()});
  std::vector<std::uint64_t> steps{attendance.since};
  for (const StepRange& range : attendance.sat_out)
    steps.insert(steps.end(), {range.first, range.last});
  state.values[kAttendance] = steps;
  return state;
}

namespace {

Result<Attendance> attendance_in(const State& checkpoint, std::uint64_t step) {
  const auto steps = checkpoint.value<std::vector<std::uint64_t>>(kAttendance);
  if (!steps.ok()) return steps.error();
  if (steps->size() % 2 == 1) {
    Attendance attendance{.since = steps->front()};
    for (std::size_t i = 1; i < steps->size(); i += 2)
      attendance.sat_out.push_back({.first = (*steps)[i], .last = (*steps)[i + 1]});
    if (attendance.can_be_of(step + 1)) return attendance;
  }
  return Error{ErrorCode::kMismatch, "checkpoint: steps that it cannot have taken part in"};
}

// From a file. Its part is known to the engine only, so its size is checked there.
Result<CheckedPayload> own_update(ByteView bytes, std::size_t model_elements) {
  const std::uint64_t elements = claimed_elements(bytes);
  if (elements > model_elements)
    return Error{ErrorCode::kMismatch, "an update of more than the model"};
  return CheckedPayload::check_update({bytes.begin(), bytes.end()}, elements);
}

}  // namespace

Status stand_at(const State& checkpoint, ClientSetup& client, const SentUpdates* sent_since) {
  Status version = check_saved_version(checkpoint);
  if (!version.ok()) return std::move(version).error().within("checkpoint");
  const Result<std::vector<RoundId>> next_round = rounds_in(checkpoint, kNextRound);
  const auto first_step = checkpoint.value<std::uint64_t>(kFirstStep);
  const auto run = checkpoint.value<std::uint64_t>(kRun);
  const Result<std::vector<RoundId>> sent = rounds_in(checkpoint, kSent);
  const auto step = checkpoint.value<std::uint64_t>(kStep);
  if (!next_round.ok()) return next_round.error();
  if (!first_step.ok()) return first_step.error();
  if (!run.ok()) return run.error();
  if (!sent.ok()) return sent.error();
  if (!step.ok()) return step.error();
  if (next_round->size() != 1)
    return Error{ErrorCode::kMismatch, "checkpoint: not one round that comes next"};
  Result<Attendance> attendance = attendance_in(checkpoint, *step);
  if (!attendance.ok()) return attendance.error();
  client.is_fresh = false;
  client.run = *run;
  client.initial.reset();
  client.next_round = next_round->front();
  client.first_step = *first_step;
  client.step = *step;
  client.attendance = *attendance;
  for (const RoundId& round : *sent) {
    const Result<ByteView> payload = checkpoint.blob(name_in_round(kUpdate, round));
    if (!payload.ok()) return payload.error();
    Result<CheckedPayload> update = own_update(*payload, client.elements);
    if (!update.ok()) return std::move(update).error().within("checkpoint");
    client.own[round] = {.payload = std::move(update).value(),
                         .attendance = attendance->until(round.step)};
  }
  if (sent_since == nullptr) return Done{};
  for (const auto& [round, payload] : *sent_since) {
    if (round.step < *step) continue;
    Result<CheckedPayload> update = own_update(payload, client.elements);
    if (!update.ok()) return std::move(update).error().within("sent updates");
    client.own.try_emplace(
        round, OwnUpdate{.payload = std::move(update).value(), .attendance = *attendance});
  }
  client.own_until = {.step = *step};
  if (!client.own.empty())
    client.own_until = std::max(*client.own_until, after(client.own.rbegin()->first));
  return Done{};
}

Status Replica::replace_state() {
  Replaced replaced{.from_step = engine_->steps_done(), .updates = client_.unmerged().size()};
  for (const float held_back : engine_->residual())
    replaced.residual += static_cast<double>(std::abs(held_back));
  const State state = client_.take_snapshot();
  sent_.clear();
  engine_ = make_engine(setup_.engine.recipe.plan);
  Status loaded = engine_->load_shared(state);
  if (!loaded.ok()) return loaded;
  ++restarts_;
  first_step_ = engine_->steps_done();
  replaced.to_step = first_step_;
  replaced_ = replaced;
  v1::Report report;
  report.set_step(engine_->steps_done());
  client_.report(report);
  return Done{};
}

void Replica::compute(StepFacts& facts) {
  work_.begin(clock_.now());
  // Parts travel while others are computed. With a pace nothing is sent before it is over, as the
  // machine that it stands in for is slower.
  const bool is_by_part = setup_.engine.local_step == LocalStep::kOurs && engine_->parts() > 1 &&
                          setup_.step_time.count() == 0;
  facts.loss = is_by_part ? compute_and_submit(learner_, *engine_) : learner_.compute_gradient();
  facts.passes = learner_.passes();
  TimePoint end = clock_.now();
  if (setup_.step_time.count() > 0) {
    const TimePoint due = work_.due(setup_.step_time);
    facts.was_late = end > due;
    pacer_.wait_until(due);
    end = std::max(end, due);  // the machine that it stands in for would not wake up late
  }
  work_.has_gradient(end);
  facts.computing = work_.computing();
  facts.computed = end;
}

Status Replica::first_half(Stance stance) {
  const bool is_done = !sent_.empty() && engine_->steps_done() <= sent_.rbegin()->first.step;
  if (!is_done) sent_.clear();
  facts_ = {.step = engine_->steps_done(),
            .stance = is_done ? Stance::kSitOut : stance,
            .loss = facts_.loss};
  if (facts_.stance == Stance::kTakePart) {
    compute(facts_);
    if (setup_.engine.local_step == LocalStep::kCallers) {
      engine_->submit_moved();
    } else if (!engine_->is_half_done()) {
      engine_->submit(learner_.gradient());
    }
    return Done{};
  }
  work_ = {};
  facts_.computed = clock_.now();
  work_.has_gradient(facts_.computed);
  if (is_done) return engine_->submit_again(sent_);
  engine_->sit_out();
  return Done{};
}

Result<StepFacts> Replica::step(Deadline deadline) {
  LONGHAUL_CHECK(engine_ != nullptr);
  if (!engine_->is_half_done()) {
    const Result<Stance> stance =
        client_.stance(engine_->steps_done(), engine_->next_rounds().back(), deadline);
    if (!stance.ok()) return stance.error();
    if (*stance == Stance::kRestart) {
      const Status replaced = replace_state();
      if (!replaced.ok()) return replaced.error();
      return step(deadline);
    }
    if (*stance == Stance::kFinish)
      return StepFacts{.stance = *stance,
                       .loss = facts_.loss,
                       .replaced = std::exchange(replaced_, std::nullopt)};
    const Status submitted = first_half(*stance);
    if (!submitted.ok()) return submitted.error();
  }
  const Status merged = engine_->end_step(deadline);
  facts_.waiting += exchange_.take_waited();
  if (!merged.ok()) {
    // The state was replaced while it waited.
    if (merged.error().code != ErrorCode::kMismatch) return merged.error();
    const Status replaced = replace_state();
    if (!replaced.ok()) return replaced.error();
    return step(deadline);
  }
  facts_.messages = exchange_.take_times();
  waiting_.add(facts_.computing, facts_.waiting, engine_->plan().period_steps);
  tell(facts_);
  work_.end(clock_.now(), facts_.waiting);
  facts_.replaced = std::exchange(replaced_, std::nullopt);
  return facts_;
}

void Replica::tell(const StepFacts& facts) {
  v1::Report report;
  const std::uint64_t step = engine_->steps_done();
  report.set_step(step);
  report.set_loss(facts.loss);
  report.set_compute_s(facts.computing.count());
  report.set_waiting_share(waiting_.share());
  report.set_passes(facts.passes);
  if (step % kDigestEvery == 0) report.set_digest(digest_of(engine_->shared()));
  client_.report(report);
}

Status Replica::settle(Deadline deadline) {
  for (std::size_t i = 0; i < engine_->in_flight().size();) {
    Status here = client_.await(engine_->in_flight()[i], deadline);
    if (here.ok()) {
      ++i;
      continue;
    }
    if (here.error().code != ErrorCode::kMismatch) return here;
    Status replaced = replace_state();
    if (!replaced.ok()) return replaced;
    i = 0;
  }
  return Done{};
}

// A state that is given meanwhile is of the end too: this replica has done the last step, and the
// hub's model is never behind.
Result<StepFacts> Replica::finish(Deadline deadline) {
  for (;;) {
    const Status drained = engine_->drain(deadline);
    if (drained.ok())
      return StepFacts{.stance = Stance::kFinish,
                       .loss = facts_.loss,
                       .replaced = std::exchange(replaced_, std::nullopt)};
    if (drained.error().code != ErrorCode::kMismatch) return drained.error();
    const Status replaced = replace_state();
    if (!replaced.ok()) return replaced.error();
  }
}

}  // namespace longhaul
