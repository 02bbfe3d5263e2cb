// The engine of one replica: gradients in, parameters moved, everything between as the recipe says.
//
//  gradient ─▶ residual += ─▶ codec.take ─▶ submit ─▶ … ─▶ collect ─▶ merge ─▶ parameters
//
// A step goes part by part. A part travels while the gradient of the next is computed, and is
// merged just before it is used:
//
//  begin_step · ready(part) for each part, in any order · merge_before(part) · end_step
//
// submit() and end_step() do it for the whole model in two halves, so that many replicas can share
// one process. A step without a gradient has another first half: submit_nothing() or sit_out(). The
// bits do not depend on the order of the parts. A checkpoint may be taken between any two calls.
//
// The plan's schedule says which parts have a round in which step of a period. The other steps only
// move the parameters; with the caller's own local step they cost nothing. A plan with another
// period or schedule takes effect when the present period is over.
//
// A recipe that may go by layer does so under a plan with a schedule. A plan for other parts waits
// until a period ends with nothing in flight: the last step of a period before it merges all.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/workers.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/plan/planner.h"
#include "longhaul/round/mean_compressor.h"
#include "longhaul/sync/engine_options.h"
#include "longhaul/sync/merge_rule.h"
#include "longhaul/sync/sent_log.h"

namespace longhaul {

// Could an engine of that options come to that plan?
Status check_plan(const Plan& plan, const EngineOptions& options);

// The options of the recipe's planner, for a run of that options.
PlannerOptions planner_options(const EngineOptions& options);

// For a two-way recipe: compresses its means. `workers` must outlive it.
std::unique_ptr<MeanCompressor> make_mean_compressor(const EngineOptions& options,
                                                     std::size_t elements, Workers& workers);

struct EngineState;

class Engine {
 public:
  // A run is given up after this many steps in a row whose gradient is not finite.
  static constexpr std::size_t kNonFiniteLimit = 10;

  // `parameters` are the replica's, equal on all replicas at the start; exchange and workers must
  // outlive the engine.
  Engine(EngineOptions options, std::span<float> parameters, Exchange& exchange, Workers& workers);

  // The mean gradient of the step before is handed over by now.
  void begin_step();

  // The gradient of a part is final: clips it, makes the local step of the part and, if the part
  // has a round now, takes what is to be sent and submits it. Each part once in a step.
  //
  // A gradient is scaled by clip ÷ norm, where the norm is above the clip. The norm of a model in
  // one part is that of its gradient. With several parts the norm of the whole gradient is not
  // known yet: it is the larger of two, that of the part and that of the whole gradient of the last
  // step that was usable (decision 19).
  //
  // A gradient that is not finite counts, once in a step; its part sends what its period has left
  // to tell, and the other parts go on.
  void ready(std::uint32_t part, std::span<float> gradient);

  // The local step of a part is the caller's, and made: the parameters are where it has led. Reads
  // them only if the part has a round. A part that is not finite counts, and sends nothing.
  void ready_moved(std::uint32_t part);

  // Collects and merges the rounds of a part that are due, in order, once the part is ready: its
  // parameters are about to be used. An error is the exchange's.
  Status merge_before(std::uint32_t part, Deadline deadline = Deadline::max());

  // When all parts are ready: merges what is due and not merged yet, and goes to the next step. It
  // is the second half of a step. After an error it may be called again.
  Status end_step(Deadline deadline = Deadline::max());

  // First half of a step: begins it, and all parts are ready.
  void submit(std::span<float> gradient);
  void submit_moved();

  // First half of a step that has no gradient: takes part in its round, if it has one, with what
  // the local steps of the period have moved; with an empty update, if there are none.
  void submit_nothing();

  // First half of a step that this replica did before it resumed from an older checkpoint, and
  // cannot do again, as its local step is the caller's. Submits again those of `sent` that are of
  // this step, and nothing to its other rounds. Where something was sent, nothing is left to tell:
  // the position goes to what was announced. An error: they do not fit, and nothing has changed.
  Status submit_again(const SentUpdates& sent);

  // First half of a step whose round has closed without this replica: nothing is submitted, and the
  // mean is collected when it is due. Without a gradient and without a round it is the same as
  // submit_nothing().
  void sit_out();

  // After the last step: merges what is still on its way.
  Status drain(Deadline deadline = Deadline::max());

  // With the caller's local step and a rule that merges gradients: the mean that was due in this
  // step, for the caller to step with; of several their sum. Empty: none was due.
  [[nodiscard]] std::span<const float> mean_gradient() const { return mean_gradient_; }

  // A checkpoint, also in the middle of a step: this replica goes on from it, bit for bit, as
  // if it had never stopped. An error of a load says what does not fit, and leaves the engine as it
  // was. Precondition: no round is in flight, if means are formed in place.
  [[nodiscard]] State save() const;
  Status load(const State& state);

  // A snapshot, what is equal on all replicas: with it a replica joins or rejoins. It starts with
  // an empty residual, as if it had sent nothing in the rounds in flight.
  [[nodiscard]] State save_shared() const;
  Status load_shared(const State& state);

  // Bit-identical on all replicas after every merge; the model to evaluate. If means are formed in
  // place, it is the parameters.
  [[nodiscard]] std::span<const float> shared() const { return rule_->shared(); }
  // The movement or gradients that this replica has not sent yet; formed anew.
  [[nodiscard]] std::vector<float> residual() const { return rule_->residual(); }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  // The last plan that was announced: it is in force, or will be.
  [[nodiscard]] const Plan& announced() const { return next_plan_ ? *next_plan_ : plan_; }
  [[nodiscard]] std::size_t steps_done() const { return step_; }
  // The step that has the next round: this one, or a later one of this period.
  [[nodiscard]] std::size_t next_round() const;
  // All of that step, in the order in which they close; at least one.
  [[nodiscard]] std::vector<RoundId> next_rounds() const;
  // Is a round merged in this step, if it was not before?
  [[nodiscard]] bool is_due(RoundId round) const {
    const auto delay = static_cast<std::uint64_t>(plan_.delay_steps);
    return round.step + (merges_all_ ? 0 : delay) <= step_;
  }
  // All parts of this step are ready: end_step() comes next.
  [[nodiscard]] bool is_half_done() const;
  // Submitted, or sat out, and not merged; by step and part.
  [[nodiscard]] const std::deque<RoundId>& in_flight() const { return in_flight_; }
  [[nodiscard]] std::size_t rounds_in_flight() const { return in_flight_.size(); }
  [[nodiscard]] const Part& part(std::uint32_t number) const { return parts_.at(number); }
  [[nodiscard]] std::size_t parts() const { return parts_.size(); }
  [[nodiscard]] std::size_t non_finite_steps() const { return non_finite_steps_; }
  [[nodiscard]] bool has_diverged() const { return non_finite_in_a_row_ >= kNonFiniteLimit; }

 private:
  [[nodiscard]] double lr() const { return options_.lr.at(step_); }
  [[nodiscard]] bool is_final_average() const { return options_.final_average == step_; }
  // The rounds of a step of the present period, or of the final average.
  [[nodiscard]] std::vector<std::uint32_t> parts_in(std::size_t step) const;
  [[nodiscard]] bool has_round(std::uint32_t part) const;
  void begin_period();
  void find_next_round();
  [[nodiscard]] bool has_own_step() const {
    return options_.local_step == LocalStep::kOurs && has_local_steps(plan_.merge);
  }
  // In a step without a usable gradient: what the other steps of the period have left to tell.
  ByteBuffer take_rest(std::uint32_t part);
  // The local step of a part, and what is to be sent of it in this step.
  ByteBuffer advance(std::uint32_t number, std::span<const float> gradient, float scale);
  // For an update of the part in this step, as far as the engine knows it.
  [[nodiscard]] TakeOptions request_of(std::uint32_t part) const;
  [[nodiscard]] Codec& codec_of(std::uint32_t part) const;
  void go_to_announced(const Part& part, const PayloadView& sent);
  void count_unusable();
  float clip_scale(std::uint32_t part, std::span<const float> gradient);
  // `gradient` is for means that are formed in place.
  void send(std::uint32_t part, ByteBuffer payload, std::span<float> gradient = {});
  void open_round(std::uint32_t part, const CheckedPayload& payload);
  void part_is_ready(std::uint32_t part, bool is_checked);
  [[nodiscard]] Status check_mean(const Mean& mean, RoundId round) const;
  Status merge_round(RoundId round, Deadline deadline);
  void go_on();
  void merge(const Mean& mean);
  void change_plan(const Plan& plan);
  [[nodiscard]] bool needs_other_parts(const Plan& plan) const;
  [[nodiscard]] bool is_last_of_period() const;
  void change_parts(const Plan& plan);
  [[nodiscard]] std::vector<std::unique_ptr<Codec>> make_codecs(
      const std::vector<Part>& parts) const;
  [[nodiscard]] State save(Extent extent) const;
  Status load(Extent extent, const State& state);
  [[nodiscard]] Result<EngineState> read(Extent extent, const State& state) const;
  [[nodiscard]] Result<EngineState> read_shared(const State& state) const;
  Status read_codecs(Extent extent, const State& state, EngineState& loaded) const;
  [[nodiscard]] EngineOptions options_with(const Plan& period_plan, Merge merge) const;
  [[nodiscard]] std::unique_ptr<Optimizer> make_optimizer() const;

  EngineOptions options_;
  std::span<float> parameters_;
  Exchange& exchange_;
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<Codec>> codecs_;  // of the parts, in their order
  std::unique_ptr<Codec> dense_;                // for the final average
  Workers& workers_;
  std::unique_ptr<Optimizer> optimizer_;  // of the local steps, or of the means
  std::unique_ptr<MergeRule> rule_;
  std::vector<float> mean_gradient_;
  Plan plan_;
  std::optional<Plan> next_plan_;  // announced, from the next step on, or waits for other parts
  RoundId next_plan_round_;        // with the mean of this round: the last one counts
  std::size_t period_start_ = 0;
  Plan period_plan_;            // the present period has its length and its schedule
  std::size_t next_round_ = 0;  // first step of the rest of the period that has one
  std::deque<RoundId> in_flight_;
  std::size_t step_ = 0;
  bool merges_all_ = false;      // in this step: next_plan_ has other parts
  std::vector<bool> is_ready_;   // by part
  std::vector<double> squares_;  // of the gradients of this step, by part, for clipping
  double norm_before_ = 0;       // of the last usable gradient, where there are several parts
  bool is_step_unusable_ = false;
  std::size_t non_finite_steps_ = 0;
  std::size_t non_finite_in_a_row_ = 0;
};

}  // namespace longhaul
