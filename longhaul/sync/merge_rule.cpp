#include "longhaul/sync/merge_rule.h"

#include <algorithm>
#include <deque>
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
  OptimizerRule(bool computes, std::span<float> parameters, Optimizer& optimizer, Workers& workers)
      : residual_(computes ? parameters.size() : 0),
        parameters_(parameters),
        optimizer_(optimizer),
        workers_(workers) {}

  ByteBuffer take(const StepContext& /*now*/, const Taking& taking) override {
    return take_gradient(taking, residual_);
  }

  void sent(const StepContext& /*now*/, RoundId /*round*/,
            const CheckedPayload& /*payload*/) override {}

  void take_back(const StepContext& /*now*/, RoundId /*round*/, const Part& part,
                 const PayloadView& message) override {
    add(message, 1.0F, part.of(std::span(residual_)));
  }

  void merge(const StepContext& now, const Part& part, const Mean& mean) override {
    step_with(mean, part, part.of(parameters_), now.lr, optimizer_, workers_);
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
  Floats residual_;  // of gradients; empty where nobody computes
  std::span<float> parameters_;
  Optimizer& optimizer_;  // of the means, the same on all replicas
  Workers& workers_;
};

// DGA: x = shared - Σ lr·g over the replica's own gradients whose mean is still on its way.
class OwnStepRule final : public MergeRule {
 public:
  OwnStepRule(std::span<const float> shared, std::span<float> parameters, Workers& workers)
      : shared_(shared.begin(), shared.end()),
        residual_(shared.size()),
        parameters_(parameters),
        workers_(workers) {}

  ByteBuffer take(const StepContext& /*now*/, const Taking& taking) override {
    newest_.assign(taking.gradient.begin(), taking.gradient.end());
    return take_gradient(taking, residual_);
  }

  void sent(const StepContext& now, RoundId round, const CheckedPayload& /*payload*/) override {
    unmerged_.push_back({.round = round, .lr = now.lr, .gradient = std::exchange(newest_, {})});
  }

  void take_back(const StepContext& /*now*/, RoundId /*round*/, const Part& part,
                 const PayloadView& message) override {
    add(message, 1.0F, part.of(std::span(residual_)));
  }

  // With the learning rate of the step it was born in, or the swap would not be even.
  void merge(const StepContext& /*now*/, const Part& part, const Mean& mean) override {
    LONGHAUL_CHECK_EQ(part.count, shared_.size());
    LONGHAUL_CHECK(!unmerged_.empty() && unmerged_.front().round == mean.round);
    const auto rate = static_cast<float>(-unmerged_.front().lr);
    for_each_tile(mean, workers_, [&](std::size_t first, std::span<const float> values) {
      kernels::add_scaled(values, rate, std::span(shared_).subspan(first, values.size()));
    });
    unmerged_.pop_front();
  }

  // Formed anew instead of corrected: rounding does not add up over the run.
  void place(const StepContext& /*next*/) override {
    std::ranges::copy(shared_, parameters_.begin());
    for (const Own& own : unmerged_) {
      if (own.gradient.empty()) continue;
      kernels::add_scaled(own.gradient, static_cast<float>(-own.lr), parameters_);
    }
  }

  void save(Extent extent, State& state) const override {
    std::vector<double> rates;
    for (const Own& own : unmerged_) {
      rates.push_back(own.lr);
      if (extent == Extent::kShared) continue;
      Floats& saved = state.tensors[name_in_round("gradient", own.round)];
      saved = own.gradient;
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
    for (std::size_t i = 0; i < in_flight.size(); ++i) {
      Own& own = unmerged_.emplace_back(Own{.round = in_flight[i], .lr = (*rates)[i]});
      if (extent == Extent::kShared) continue;
      own.gradient.resize(shared_.size());
      Status loaded = load_tensor(name_in_round("gradient", own.round), state, own.gradient);
      if (!loaded.ok()) return loaded;
    }
    return extent == Extent::kReplica ? load_tensor("residual", state, residual_) : Done{};
  }

  [[nodiscard]] std::span<const float> shared() const override { return shared_; }
  [[nodiscard]] Floats residual() const override { return residual_; }

 private:
  struct Own {
    RoundId round;
    double lr = 0;
    Floats gradient;  // empty: there was none
  };
  Floats shared_;
  Floats residual_;  // of gradients
  std::span<float> parameters_;
  Workers& workers_;
  Floats newest_;
  std::deque<Own> unmerged_;
};

}  // namespace

ByteBuffer take_gradient(const Taking& taking, std::span<float> residual) {
  const std::span held_back = taking.part.of(residual);
  ByteBuffer payload = taking.codec.take({.residual = held_back,
                                          .increment = taking.gradient,
                                          .keep_ratio = taking.keep_ratio,
                                          .seed = taking.seed});
  kernels::feed(held_back, {.decay = taking.kept});
  return payload;
}

void for_each_tile(
    const Mean& mean, Workers& workers,
    const std::function<void(std::size_t first, std::span<const float> values)>& visit) {
  const std::vector<TileRange> ranges = split_tiles(tile_count(mean.elements()), workers);
  workers.run(ranges.size(), [&](std::size_t i) {
    Floats sum;
    TileEntries scratch;
    for (std::size_t tile = ranges[i].first; tile < ranges[i].end; ++tile)
      visit(tile_begin(tile), mean.tile(tile, sum, scratch));
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
  const Optimizer::Step step = optimizer.begin(part.first, lr);
  for_each_tile(mean, workers, [&](std::size_t first, std::span<const float> values) {
    optimizer.step(step, part.first + first, parameters.subspan(first, values.size()), values);
  });
}

std::unique_ptr<MergeRule> make_merge_rule(const RuleOptions& options,
                                           std::span<const float> shared,
                                           std::span<float> parameters, Optimizer& optimizer,
                                           Workers& workers) {
  const bool has_parts = options.merge == Merge::kLate || options.merge == Merge::kOuter;
  LONGHAUL_CHECK(options.parts.size() <= 1 || has_parts);
  const auto start = [&] { return Floats(shared.begin(), shared.end()); };
  switch (options.merge) {
    case Merge::kOptimizer:
      return std::make_unique<OptimizerRule>(options.computes, parameters, optimizer, workers);
    case Merge::kOwnStep:
      return std::make_unique<OwnStepRule>(shared, parameters, workers);
    case Merge::kLate:
      return make_late_rule(options, options.computes ? start() : Floats(), parameters, optimizer,
                            workers, Unmerged(shared.size(), options.parts));
    case Merge::kAhead:
      return make_ahead_rule(options, start(), parameters, optimizer, workers,
                             Unmerged(shared.size(), options.parts), Floats(shared.size()));
    case Merge::kOuter:
      return make_outer_rule(options, start(), parameters, workers);
    case Merge::kAnchor:
      return make_anchor_rule(options, start(), parameters, workers);
  }
  return nullptr;
}

}  // namespace longhaul
