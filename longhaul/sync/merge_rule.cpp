#include "longhaul/sync/merge_rule.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/sync/ahead_rule.h"
#include "longhaul/sync/anchor_rule.h"
#include "longhaul/sync/late_rule.h"
#include "longhaul/sync/outer_rule.h"
#include "longhaul/sync/unmerged.h"

namespace longhaul {
namespace {

using Floats = std::vector<float>;

// DD-EF-SGD and its special cases: nobody moves until the mean is there.
class OptimizerRule final : public MergeRule {
 public:
  OptimizerRule(const EngineOptions& options, std::span<float> parameters, Optimizer& optimizer,
                Workers& workers)
      : lr_(options.lr),
        kept_(options.recipe.kept_residual()),
        residual_(options.computes && !options.averages_in_place ? parameters.size() : 0),
        parameters_(parameters),
        optimizer_(optimizer),
        workers_(workers) {}

  ByteBuffer take(const Part& part, Codec& codec, TakeOptions request) override {
    return take_gradient(codec, std::move(request), part.of(std::span(residual_)), kept_);
  }

  void sent(RoundId /*round*/, const CheckedPayload& /*payload*/) override {}

  void take_back(std::size_t /*step*/, RoundId /*round*/, const Part& part,
                 const PayloadView& message) override {
    add(message, 1.0F, part.of(std::span(residual_)));
  }

  void merge(std::size_t step, const Part& part, const Mean& mean) override {
    step_with(mean, part, part.of(parameters_), lr_.at(step), optimizer_, workers_);
  }

  void save(Extent extent, State& state) const override {
    if (extent == Extent::kReplica) save_tensor("residual", residual_, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> /*in_flight*/) override {
    return extent == Extent::kReplica ? load_tensor("residual", state, residual_) : Done{};
  }

  [[nodiscard]] std::span<const float> shared() const override { return parameters_; }
  [[nodiscard]] Floats residual() const override { return residual_; }

 private:
  LrSchedule lr_;
  float kept_;
  Floats residual_;  // of gradients; empty where nobody computes, or means are formed in place
  std::span<float> parameters_;
  Optimizer& optimizer_;  // of the means, the same on all replicas
  Workers& workers_;
};

// DGA: x = shared - Σ lr·g over the replica's own gradients whose mean is still on its way.
class OwnStepRule final : public MergeRule {
 public:
  OwnStepRule(const EngineOptions& options, std::span<const float> shared,
              std::span<float> parameters, Workers& workers)
      : lr_(options.lr),
        kept_(options.recipe.kept_residual()),
        shared_(shared.begin(), shared.end()),
        residual_(shared.size()),
        parameters_(parameters),
        workers_(workers) {}

  ByteBuffer take(const Part& part, Codec& codec, TakeOptions request) override {
    newest_.assign(request.increment.begin(), request.increment.end());
    return take_gradient(codec, std::move(request), part.of(std::span(residual_)), kept_);
  }

  void sent(RoundId round, const CheckedPayload& /*payload*/) override {
    unmerged_.emplace(round, std::exchange(newest_, {}));
  }

  void take_back(std::size_t /*step*/, RoundId /*round*/, const Part& part,
                 const PayloadView& message) override {
    add(message, 1.0F, part.of(std::span(residual_)));
  }

  // With the learning rate of the step it was born in, or the swap would not be even.
  void merge(std::size_t /*step*/, const Part& part, const Mean& mean) override {
    LONGHAUL_CHECK_EQ(part.count, shared_.size());
    LONGHAUL_CHECK(!unmerged_.empty() && unmerged_.begin()->first == mean.round);
    const auto rate = static_cast<float>(-lr_.at(mean.round.step));
    for_each_tile(mean, workers_, [&](std::size_t first, std::span<const float> values) {
      kernels::add_scaled(values, rate, std::span(shared_).subspan(first, values.size()));
    });
    unmerged_.erase(unmerged_.begin());
  }

  // Formed anew instead of corrected: rounding does not add up over the run.
  void place(std::size_t /*next_step*/) override {
    std::ranges::copy(shared_, parameters_.begin());
    for (const auto& [round, gradient] : unmerged_) {
      if (gradient.empty()) continue;
      kernels::add_scaled(gradient, static_cast<float>(-lr_.at(round.step)), parameters_);
    }
  }

  void save(Extent extent, State& state) const override {
    std::vector<double> rates;
    for (const auto& [round, gradient] : unmerged_) {
      rates.push_back(lr_.at(round.step));
      if (extent == Extent::kShared) continue;
      Floats& saved = state.tensors[name_in_round("gradient", round)];
      saved = gradient;
      saved.resize(shared_.size());
    }
    state.values["rates"] = rates;
    if (extent == Extent::kReplica) save_tensor("residual", residual_, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    const auto rates = state.value<std::vector<double>>("rates");
    if (!rates.ok()) return rates.error();
    if (rates->size() != in_flight.size())
      return Error{ErrorCode::kMismatch, "rates: not one for each round in flight"};
    for (const RoundId& round : in_flight) {
      Floats& gradient = unmerged_[round];
      if (extent == Extent::kShared) continue;
      gradient.resize(shared_.size());
      Status loaded = load_tensor(name_in_round("gradient", round), state, gradient);
      if (!loaded.ok()) return loaded;
    }
    return extent == Extent::kReplica ? load_tensor("residual", state, residual_) : Done{};
  }

  [[nodiscard]] std::span<const float> shared() const override { return shared_; }
  [[nodiscard]] Floats residual() const override { return residual_; }

 private:
  LrSchedule lr_;
  float kept_;
  Floats shared_;
  Floats residual_;  // of gradients
  std::span<float> parameters_;
  Workers& workers_;
  Floats newest_;
  std::map<RoundId, Floats> unmerged_;  // its gradients by round; empty: there was none
};

}  // namespace

ByteBuffer take_gradient(Codec& codec, TakeOptions request, std::span<float> residual, float kept) {
  request.residual = residual;
  ByteBuffer payload = codec.take(request);
  kernels::feed(residual, {}, kept);
  return payload;
}

void for_each_tile(
    const Mean& mean, Workers& workers,
    const std::function<void(std::size_t first, std::span<const float> values)>& visit) {
  run_tile_ranges(tile_count(mean.elements()), workers, [&](std::size_t tile, std::size_t end) {
    Floats sum;
    TileEntries scratch;
    for (; tile < end; ++tile) visit(tile_begin(tile), mean.tile(tile, sum, scratch));
  });
}

float largest_magnitude(std::span<const float> values, Workers& workers) {
  Floats largest(tile_count(values.size()));
  run_tiles(values.size(), workers, [&](std::size_t first, std::size_t count) {
    largest[first / kTileElements] = kernels::largest_magnitude(values.subspan(first, count));
  });
  return largest.empty() ? 0.0F : std::ranges::max(largest);
}

void step_with(const Mean& mean, const Part& part, std::span<float> parameters, double lr,
               Optimizer& optimizer, Workers& workers) {
  LONGHAUL_CHECK_EQ(mean.elements(), part.count);
  const kernels::OptimizerStep step = optimizer.begin(part.first, lr);
  for_each_tile(mean, workers, [&](std::size_t first, std::span<const float> values) {
    optimizer.step(step, part.first + first, parameters.subspan(first, values.size()), values);
  });
}

std::unique_ptr<MergeRule> make_merge_rule(const EngineOptions& options,
                                           std::span<const float> shared,
                                           std::span<float> parameters, Optimizer& optimizer,
                                           Workers& workers) {
  const Merge merge = options.recipe.plan.merge;
  const bool has_parts =
      merge == Merge::kLate || merge == Merge::kOuter || merge == Merge::kOptimizer;
  LONGHAUL_CHECK(has_parts || parts_of(options, shared.size()).size() == 1);
  const auto start = [&] { return Floats(shared.begin(), shared.end()); };
  const bool stores_shared = options.computes && !options.averages_in_place;
  switch (merge) {
    case Merge::kOptimizer:
      return std::make_unique<OptimizerRule>(options, parameters, optimizer, workers);
    case Merge::kOwnStep:
      return std::make_unique<OwnStepRule>(options, shared, parameters, workers);
    case Merge::kLate:
      return make_late_rule(options, stores_shared ? start() : Floats(), parameters, optimizer,
                            workers, Unmerged(shared.size(), parts_of(options, shared.size())));
    case Merge::kAhead:
      return make_ahead_rule(options, start(), parameters, optimizer, workers,
                             Unmerged(shared.size(), parts_of(options, shared.size())),
                             Floats(shared.size()));
    case Merge::kOuter:
      return make_outer_rule(options, start(), parameters, workers);
    case Merge::kAnchor:
      return make_anchor_rule(options, start(), parameters, workers);
  }
  return nullptr;
}

}  // namespace longhaul
