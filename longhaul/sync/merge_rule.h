// What a replica does with its own gradient at once, where it stands until the mean comes, and what
// it does with the mean when it is due.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/round/plan.h"
#include "longhaul/sync/local_steps.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/part.h"
#include "longhaul/sync/saved.h"

namespace longhaul {

struct StepContext {
  std::size_t step = 0;
  double lr = 0;
  bool has_round = true;
};

// In a step: update_of, accept, sent, then (take_back and) merge for each round that is due, then
// place. `parameters` is always where gradients are computed.
class MergeRule {
 public:
  virtual ~MergeRule() = default;

  // The gradient of this step is known. Returns what is to be sent (the gradient, or the delta of a
  // step of its own), which is valid until the next call. Nothing counts before accept().
  virtual std::span<const float> update_of(const StepContext& now, std::span<const float> gradient,
                                           std::span<float> parameters) = 0;

  // What is to be sent, beside the residual, in a step without a usable gradient that ends a
  // period.
  virtual std::span<const float> update_without_gradient(const StepContext& /*now*/) { return {}; }

  // The update was usable, and the residual has it: the replica is where its step has led it. If
  // not, place() takes it back to where it was.
  virtual void accept(std::span<const float> /*parameters*/) {}

  // Does what the codec does not send wait for the next round? False: it is told anew each time.
  [[nodiscard]] virtual bool keeps_residual() const { return true; }

  // The replica's own message of a round is on its way; an empty payload stands for zero. Also
  // called without update_of, if a step had no usable gradient.
  virtual void sent(const StepContext& /*now*/, RoundId /*round*/, ByteView /*payload*/) {}

  // The mean of `round`, which is merged next, does not hold this replica's own message: back to
  // the residual, of that part, with it.
  virtual void take_back(const StepContext& now, RoundId round, const PayloadView& message,
                         std::span<float> residual);

  // The mean of a round is due; rounds of a part come in the order they were born in.
  virtual void merge(const StepContext& now, const Part& part, const Mean& mean,
                     std::span<float> parameters) = 0;

  // Puts `parameters` where the next gradient is to be computed. `residual` is what compression has
  // held back of this replica's updates.
  virtual void place(const StepContext& /*next*/, std::span<const float> /*residual*/,
                     std::span<float> /*parameters*/) {}

  // From the next step on another rule holds; only between late correction and look-ahead. What the
  // residual holds is converted.
  virtual void change_to(Merge merge, const StepContext& next, std::span<float> residual);

  // What it remembers beside the shared model. Loads into a rule that was made with the saved
  // shared model; on an error that rule is of no use.
  virtual void save(Extent extent, State& state) const = 0;
  virtual Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) = 0;

  // The model that is the same on all replicas, bit for bit; `parameters` itself for rules that
  // never leave it.
  [[nodiscard]] virtual std::span<const float> shared(std::span<const float> parameters) const = 0;
};

// Look-ahead needs an optimizer whose steps it can foresee: not AdamW. Without `parts` all rounds
// are of the whole model; with more than one of them, for `late` and `outer` only.
std::unique_ptr<MergeRule> make_merge_rule(Merge merge, const OptimizerSpec& optimizer,
                                           std::span<const float> initial,
                                           const LocalSteps& local = {},
                                           const std::vector<Part>& parts = {});

}  // namespace longhaul
