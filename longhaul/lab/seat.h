// A replica of the lab: it takes part in every step, and its time is the network's.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/exchange/simulated.h"
#include "longhaul/sync/replica.h"

namespace longhaul::lab {

class Seat final : public Membership, private Clock {
 public:
  using Stretch = std::pair<Seconds, Seconds>;  // of time: begin and end

  // The slot of the options says which replica. A step of it works for `step_time`. Workload and
  // network outlive the seat.
  Seat(const EngineOptions& options, Seconds step_time, std::uint64_t steps, Workload& workload,
       SimulatedNetwork& network);

  [[nodiscard]] Replica& replica() { return replica_; }
  [[nodiscard]] const Engine& engine() const { return replica_.engine(); }
  // Engine and learner: a checkpoint for Replica::resume().
  [[nodiscard]] State save() const;
  // When its last step ended; before the first one: its time.
  [[nodiscard]] Seconds ended() const { return ended_.value_or(network_.now(slot_)); }
  // When it has worked since the last call, in order.
  [[nodiscard]] std::vector<Stretch> take_worked() { return std::exchange(worked_, {}); }

 private:
  void work(Seconds time);
  [[nodiscard]] TimePoint now() const override;
  Result<std::optional<Plan>> first_plan(Deadline deadline) override;
  Result<Stance> stance(std::uint64_t step, RoundId round, Deadline deadline) override;
  State take_snapshot() override;
  [[nodiscard]] std::size_t updates_in_flight() const override;
  Status await(RoundId round, Deadline deadline) override;
  void report(const StepReport& report) override;
  void save(State& checkpoint) const override;

  std::size_t slot_;
  std::uint64_t steps_;  // of the run
  Plan plan_;
  SimulatedNetwork& network_;
  std::unique_ptr<Learner> learner_;
  std::vector<Stretch> worked_;
  std::optional<Seconds> ended_;
  Workers workers_{1};  // a crew of its own, as crews cannot be nested
  Replica replica_;
};

}  // namespace longhaul::lab
