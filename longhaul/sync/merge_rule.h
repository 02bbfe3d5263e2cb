// A merge rule decides what a replica sends, and what the mean does to its parameters when it is
// due. The local step, which moves parameters between rounds, is not part of it: it is the engine's
// optimizer, or the caller's own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/exchange/saved.h"
#include "longhaul/round/plan.h"
#include "longhaul/sync/local_steps.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/part.h"

namespace longhaul {

struct StepContext {
  std::size_t step = 0;
  double lr = 0;
};

// An update of one part that is about to be sent.
struct Taking {
  Part part;
  std::span<const float> gradient;  // of the part; for rules without local steps
  // The local step on the part, from its own start on. Empty: the caller made it, or there is none.
  std::function<void(std::size_t first, std::size_t count)> move;
  std::function<void(std::size_t first, std::span<float> out)> preview;
  Codec& codec;
  double keep_ratio = 1.0;
  std::uint64_t seed = 0;
  float kept = 1.0F;  // share of what the codec holds back that is not lost
};

// In a step: take and sent for each part that has a round, then (take_back and) merge for each
// round that is due, then place. The parameters are always where gradients are computed.
class MergeRule {
 public:
  virtual ~MergeRule() = default;

  // Makes the local step of the part, and returns the payload of its update. Empty, and nothing is
  // taken, if the caller has moved it to where it is of no use: not finite, or absurd.
  virtual ByteBuffer take(const StepContext& now, const Taking& taking) = 0;

  // The replica's own message of a round is on its way; an empty payload stands for zero. Also
  // called without take, if a step had no usable gradient.
  virtual void sent(const StepContext& now, RoundId round, const CheckedPayload& payload) = 0;

  // The mean of `round`, which is merged next, does not hold this replica's own message: back to
  // the residual of that part with it.
  virtual void take_back(const StepContext& now, RoundId round, const Part& part,
                         const PayloadView& message) = 0;

  // The mean of a round is due; rounds of a part come in the order they were born in.
  virtual void merge(const StepContext& now, const Part& part, const Mean& mean) = 0;

  // Puts the parameters where the next gradient is computed, for rules whose merge does not.
  virtual void place(const StepContext& /*next*/) {}

  // The rule that holds from the next step on and goes on from this one's state, which it takes
  // over; nothing if that cannot be.
  virtual std::unique_ptr<MergeRule> become(Merge /*merge*/, const StepContext& /*next*/) {
    return nullptr;
  }

  // The state of the rule beside the shared model and the parameters. Loads into a rule that was
  // made with the saved shared model; on an error that rule is of no use.
  virtual void save(Extent extent, State& state) const = 0;
  virtual Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) = 0;

  // The model that is the same on all replicas, bit for bit.
  [[nodiscard]] virtual std::span<const float> shared() const = 0;
  // The movement or gradients that this replica has not sent yet.
  [[nodiscard]] virtual std::vector<float> residual() const = 0;
};

struct RuleOptions {
  Merge merge = Merge::kOptimizer;
  OptimizerOptions optimizer;
  LocalSteps local = {};
  std::vector<Part> parts = {};  // none: all rounds are of the whole model
  bool computes = true;          // false: nobody takes gradients here
};

// `shared` is the model that all replicas have; `parameters`, `optimizer` and `workers` must
// outlive the rule. The optimizer is the replica's own where it has local steps, else that of the
// means. Look-ahead needs one whose steps it can foresee: not AdamW. More than one part is for
// `late` and `outer` only.
std::unique_ptr<MergeRule> make_merge_rule(const RuleOptions& options,
                                           std::span<const float> shared,
                                           std::span<float> parameters, Optimizer& optimizer,
                                           Workers& workers);

// For rules that send gradients: feeds the gradient to the residual, of the whole model, and takes.
ByteBuffer take_gradient(const Taking& taking, std::span<float> residual);

// Calls visit(first, values) for each tile of a mean, several at once.
void for_each_tile(
    const Mean& mean, Workers& workers,
    const std::function<void(std::size_t first, std::span<const float> values)>& visit);

// The largest magnitude; infinity if there is a NaN.
float largest_magnitude(std::span<const float> values, Workers& workers);

// Steps with a mean of gradients; `parameters` are those of the part.
void step_with(const Mean& mean, const Part& part, std::span<float> parameters, double lr,
               Optimizer& optimizer, Workers& workers);

}  // namespace longhaul
