// One replica's training: gradients in the steps it takes part in, means in all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/base/workers.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/exchange/membership.h"
#include "longhaul/sync/engine.h"
#include "longhaul/sync/learner.h"
#include "longhaul/sync/pacer.h"
#include "longhaul/sync/timed_exchange.h"
#include "longhaul/sync/work_timer.h"

namespace longhaul {

// The losses of a replica when its state was replaced by the hub's.
struct Replaced {
  std::uint64_t from_step = 0;  // where it stood
  std::uint64_t to_step = 0;    // where it goes on
  std::size_t updates = 0;      // sent and not merged: what became of them it does not learn
  double residual = 0;          // Σ|residual|, dropped
};

// The course of a step, for reports and progress.
struct StepFacts {
  std::uint64_t step = 0;  // the one that was done
  Stance stance = Stance::kTakePart;
  double loss = 0;                     // of the last gradient
  std::uint32_t passes = 0;            // forward and backward, in this step; 0: it sat out
  Seconds computing{};                 // by a WorkTimer, paced
  Seconds waiting{};                   // for means
  bool was_late = false;               // computing took longer than the pace
  TimePoint computed{};                // when the gradient was there
  std::optional<TimePoint> sent{};     // its last update; nothing: the step sent none
  std::vector<MergedRound> merged{};   // since the step before
  std::optional<Replaced> replaced{};  // before it
};

// The loop of one replica.
// A step of a recipe by layer ends in the forward pass of the next one, which merges each part just
// before it uses it. So after end_step() means may still be on their way, and
// engine().is_half_done(). With a step time such a recipe is paced part by part.
//
// With our local step (EngineOptions::local_step) the learner computes gradients. With the caller's
// compute_gradient() makes the step itself: it moves the parameters, and gradient() is not asked
// for. Such a replica never does a step again: docs/hub.md.
class Replica {
 public:
  struct Options {
    EngineOptions engine;
    Workers& workers;
    const Clock& clock;
    Seconds step_time{};  // a step works at least this long; 0: as long as it takes
    // Called in place of waiting until so much work is done: for clocks that are not the machine's.
    std::function<void(Seconds work)> advance{};
    // Asked when the deadline passes while a forward pass waits for a mean: true to wait on. Else
    // the gradient is given up, and computed anew when the step is tried again.
    std::function<bool()> goes_on{};
  };
  // All outlive the replica.
  Replica(Options options, Learner& learner, Membership& membership, Exchange& exchange);

  // Waits until the run starts: takes over its plan, or its state.
  Status start(Deadline deadline);
  // In place of start(): goes on from a state that save() has made. The membership knows that state
  // already (over a hub, by stand_at()). `sent`: updates since then, by the SentLog of a replica
  // whose local step is the caller's.
  Status resume(const State& checkpoint, SentUpdates sent = {});
  // One step, both halves. With the stance kFinish there was none: the run is over. kDeadline: not
  // in time, and nothing is lost: call it again. Other errors are final.
  Result<StepFacts> step(Deadline deadline);
  // The first half of a step: asks for the stance, computes and submits. Called again before
  // end_step() it does nothing. Errors and kFinish as step().
  Result<Stance> begin_step(Deadline deadline);
  // The second half: merges and reports. With the stance kRestart the state was replaced meanwhile,
  // and begin_step() comes again. Errors as step(). Several replicas of one process go through
  // their steps together: all begin, then all end. A step that ends in the next forward pass ends
  // now if this is called again.
  Result<StepFacts> end_step(Deadline deadline);
  // The step ends in the forward pass of the next one: see above.
  [[nodiscard]] bool ends_in_forward() const { return ends_in_forward_; }
  // After the step at which the run is stopped: waits for the means that are on their way and
  // merges none, as none is due, but those of a step that ends in the next forward pass. A
  // checkpoint of then goes on as if nothing had stopped.
  Status settle(Deadline deadline);
  // After the last step: merges what is still on its way. Then the replica can leave.
  Result<StepFacts> finish(Deadline deadline);
  // A checkpoint of everything that is this replica's own; after start() or resume(), between calls
  // of step().
  [[nodiscard]] State save() const;
  // Ends a wait for the pace; callable from every thread.
  void interrupt() { pacer_.interrupt(); }

  [[nodiscard]] const Engine& engine() const { return *engine_; }
  [[nodiscard]] double loss() const { return facts_.loss; }  // of its last gradient
  // Counts the states that were replaced.
  [[nodiscard]] std::size_t restarts() const { return restarts_; }

 private:
  [[nodiscard]] std::unique_ptr<Engine> make_engine(const Plan& plan);
  Status replace_state();
  Status submit(Stance stance);
  void compute(StepFacts& facts);
  void compute_by_layer(StepFacts& facts);
  [[nodiscard]] bool is_by_layer() const;
  [[nodiscard]] bool is_paced() const { return !times_.layers.empty(); }
  Status leave_open_step(Deadline deadline);
  [[nodiscard]] bool is_ahead_of_means();
  Status compute_and_merge(Deadline deadline);
  Status end_open_step(Deadline deadline);
  void note_wait();
  void begin_forward();
  Status merge_at_its_time(std::uint32_t part, Deadline deadline);
  Status pass_forward(Deadline deadline);
  Status end_in_forward(Deadline deadline);
  void work(Seconds time, StepFacts& facts);
  void tell(const StepFacts& facts);
  [[nodiscard]] StepFacts at_the_end();

  Options options_;
  Learner& learner_;
  Membership& membership_;
  const Clock& clock_;
  TimedExchange exchange_;
  Pacer pacer_;
  WorkTimer work_;
  LayerProfile times_;                // of the parts, with this step time; empty: not by layer
  std::unique_ptr<Engine> engine_;    // from the start on
  std::optional<Replaced> replaced_;  // not told yet
  std::size_t restarts_ = 0;
  SentUpdates sent_;  // before it resumed, by steps that it has not reached
  StepFacts facts_;   // of the step that is under way
  bool ends_in_forward_ = false;
  // The forward pass that is under way, or done for the next gradient.
  std::optional<std::uint32_t> unused_parts_;  // those that it has not come to: the first ones
  Seconds worked_{};                           // in this step
  Seconds waited_{};
};

}  // namespace longhaul
