// The results of a run in the lab or in a rehearsal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/units.h"
#include "longhaul/round/plan.h"
#include "longhaul/sync/target.h"

namespace longhaul::lab {

// The use that a replica made of a time span.
enum class Activity : std::uint8_t { kCompute, kSend, kReceive, kWait };

// A stretch of a replica's time line.
// For the time line: what one replica did from `begin` to `end`.
struct Span {
  std::size_t replica = 0;
  Activity activity = Activity::kCompute;
  Seconds begin{};
  Seconds end{};
  std::size_t step = 0;    // of a message: its round's
  std::uint32_t part = 0;  // of a message; of a wait: of the mean that ended it
  // For a message: the first part of the span, before the line was free, and the last part, after
  // it had left the line. It occupied the line in between.
  Seconds queued{};
  Seconds latency{};
};

// Bytes of one round, by replica, and how long they occupied the line.
struct RoundWire {
  std::vector<double> up;
  std::vector<double> down;
  std::vector<double> up_line_s;
  std::vector<double> down_line_s;
};

// The rounds of one step, by part; empty: the step had none.
using StepWire = std::map<std::uint32_t, RoundWire>;

// Where the time of one replica went, over the whole run.
struct TimeSpent {
  Seconds computing{};
  Seconds sending{};  // waiting while its messages, up or down, were on the line or queued for it
  Seconds latency{};  // waiting while they travelled
  Seconds others{};   // waiting for updates of other replicas after its own had arrived
  // While at least one of its rounds was on its way, whether it computed or waited.
  Seconds communicating{};

  [[nodiscard]] Seconds waiting() const { return sending + latency + others; }
  [[nodiscard]] Seconds total() const { return computing + waiting(); }
};

// The rate of the slowest link.
struct RatePoint {
  Seconds time{};
  double up_bits_per_s = 0;
  double down_bits_per_s = 0;
};

// A planner's decision: announced with the mean of the round of `step` (the first: before step 0).
struct PlanPoint {
  std::size_t step = 0;
  Seconds time{};
  Plan plan;
  Seconds predicted_step_time{};
  std::string reason;
};

// How a run ended.
enum class RunStatus : std::uint8_t { kDone, kDiverged, kInterrupted };

// Everything that a run gave.
struct RunResult {
  std::string recipe;    // as asked for, with its settings: "dd-ef-sgd:delay_steps=3"
  std::string settings;  // what a search chose for this run: "train.lr=0.05"; empty: no search
  std::uint64_t seed = 1;
  double lr = 0;
  RunStatus status = RunStatus::kDone;
  std::size_t replicas = 0;
  std::size_t parameters = 0;
  std::size_t steps = 0;
  std::optional<Seconds> time_to_target;  // empty: not reached
  std::optional<std::size_t> steps_to_target;
  std::optional<double>
      final_loss;  // on all held-out data, of the shared model after the drain; empty: diverged
  std::optional<double> final_accuracy;
  Seconds virtual_time{};  // until the last step has ended; what is on its way then comes later
  Seconds step_time{};     // mean virtual time per step after warm-up: a slope over whole cycles
                           // of periods and delay
  double efficiency = 0;   // compute time of the slowest replica ÷ virtual time
  std::vector<TimeSpent> spent;  // by replica; empty: not known
  std::uint64_t bytes_up = 0;    // sums over replicas
  std::uint64_t bytes_down = 0;
  std::string digest;  // of the final shared parameters
  std::size_t non_finite_steps = 0;
  // A rehearsal's: by formula, before it started; and steps that the machine was too slow for.
  std::optional<Seconds> predicted_step_time;
  std::size_t late_steps = 0;
  Plan plan;  // at the end
  std::string codec;
  // A recipe by layer has parts; the planner's formula gives these figures for its last plan.
  std::vector<std::string> part_names;
  std::optional<double> planned_hidden_share;
  std::optional<Seconds> planned_exposed;
  std::vector<PlanPoint> plans;  // what a planner decided; empty for fixed plans
  std::vector<EvalPoint> evaluations;
  // By step: the mean loss of the replicas' batches, without an accuracy, and the virtual time at
  // which the slowest replica had finished it.
  std::vector<EvalPoint> losses;
  std::vector<StepWire> wire;  // by step
  std::vector<Span> timeline;  // of the first steps only
  std::vector<RatePoint> rates;
};

// Only a rehearsal predicts: its clock is the machine's.
inline bool is_rehearsal(const std::vector<RunResult>& runs) {
  return !runs.empty() && runs.front().predicted_step_time.has_value();
}

}  // namespace longhaul::lab
