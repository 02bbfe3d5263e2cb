#include "longhaul/lab/seat.h"

#include "longhaul/base/check.h"

namespace longhaul::lab {

Seat::Seat(const EngineOptions& options, Seconds step_time, std::uint64_t steps, Workload& workload,
           SimulatedNetwork& network)
    : slot_(options.slot),
      steps_(steps),
      plan_(options.recipe.plan),
      network_(network),
      learner_(workload.make_learner(slot_)),
      replica_({.engine = options,
                .workers = workers_,
                .clock = *this,
                .step_time = step_time,
                .advance = [this](Seconds time) { work(time); }},
               *learner_, *this, network.exchange(slot_)) {}

void Seat::work(Seconds time) {
  const Seconds begin = network_.now(slot_);
  network_.advance(slot_, time);
  const Seconds end = network_.now(slot_);
  const bool goes_on = !worked_.empty() && worked_.back().second == begin;
  if (goes_on) {
    worked_.back().second = end;
  } else {
    worked_.emplace_back(begin, end);
  }
}

State Seat::save() const {
  State state = engine().save();
  learner_->save(state);
  return state;
}

TimePoint Seat::now() const { return time_after(TimePoint{}, network_.now(slot_)); }

Result<std::optional<Plan>> Seat::first_plan(Deadline /*deadline*/) { return std::optional(plan_); }

Result<Stance> Seat::stance(std::uint64_t step, RoundId /*round*/, Deadline /*deadline*/) {
  return step < steps_ ? Stance::kTakePart : Stance::kFinish;
}

// Nobody replaces the state of a replica here, so this is not called.
State Seat::take_snapshot() {
  LONGHAUL_CHECK(false);
  return {};
}
std::size_t Seat::updates_in_flight() const { return network_.in_flight(slot_); }

// After settle() each mean is there, or will never be.
Status Seat::await(RoundId /*round*/, Deadline /*deadline*/) { return Done{}; }

void Seat::report(const StepReport& /*report*/) { ended_ = network_.now(slot_); }

void Seat::save(State& /*checkpoint*/) const {}

}  // namespace longhaul::lab
