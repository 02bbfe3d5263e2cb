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
#include "longhaul/sync/engine_options.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/part.h"

namespace longhaul {

// Says what is sent, where a replica stands, and what a mean does.
// In a step: take and sent for each part that has a round, then (take_back and) merge for each
// round that is due, then place. The parameters are always where gradients are computed.
class MergeRule {
 public:
  virtual ~MergeRule() = default;

  // Makes the local step of the part, and returns the payload of its update. Empty, and nothing is
  // taken, if the caller has moved it to where it is of no use: not finite, or absurd.
  //
  // The request has the gradient of the part as its increment, for rules without local steps, and
  // the local step on the part; no step: the caller made it, or there is none. The rule adds where
  // the update stands.
  virtual ByteBuffer take(const Part& part, Codec& codec, TakeOptions request) = 0;

  // The replica's own message of a round of this step is on its way; an empty payload stands for
  // zero. Also called without take, if a step had no usable gradient.
  virtual void sent(RoundId round, const CheckedPayload& payload) = 0;

  // The mean of `round`, which is merged next in this step, does not hold this replica's own
  // message: back to the residual of that part with it.
  virtual void take_back(std::size_t step, RoundId round, const Part& part,
                         const PayloadView& message) = 0;

  // The mean of a round is due in this step; rounds of a part come in the order they were born in.
  virtual void merge(std::size_t step, const Part& part, const Mean& mean) = 0;

  // Puts the parameters where the next gradient is computed, for rules whose merge does not.
  virtual void place(std::size_t /*next_step*/) {}

  // The rule that holds from the next step on and goes on from this one's state, which it takes
  // over; nothing if that cannot be.
  virtual std::unique_ptr<MergeRule> become(Merge /*merge*/, std::size_t /*next_step*/) {
    return nullptr;
  }

  // The state of the rule beside the shared model and the parameters. Loads into a rule that was
  // made with the saved shared model. After an error the rule must not be used.
  virtual void save(Extent extent, State& state) const = 0;
  virtual Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) = 0;

  // The model that is the same on all replicas, bit for bit.
  [[nodiscard]] virtual std::span<const float> shared() const = 0;
  // The movement or gradients that this replica has not sent yet.
  [[nodiscard]] virtual std::vector<float> residual() const = 0;
};

// The rule of the recipe's plan. `shared` is the model that all replicas have; `parameters`,
// `optimizer` and `workers` must outlive the rule. The optimizer is the replica's own where it has
// local steps, else that of the means. Look-ahead needs one whose steps it can foresee: not AdamW.
// More than one part is for `late`, `outer` and `optimizer` only.
std::unique_ptr<MergeRule> make_merge_rule(const EngineOptions& options,
                                           std::span<const float> shared,
                                           std::span<float> parameters, Optimizer& optimizer,
                                           Workers& workers);

// For rules that send gradients: feeds the gradient to the residual, of the part, and takes. Keeps
// the share `kept` of the rest.
ByteBuffer take_gradient(Codec& codec, TakeOptions request, std::span<float> residual, float kept);

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
