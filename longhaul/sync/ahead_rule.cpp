#include "longhaul/sync/ahead_rule.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/sync/late_rule.h"

namespace longhaul {
namespace {

class AheadRule final : public MergeRule {
 public:
  AheadRule(EngineOptions options, std::vector<float> shared, std::span<float> parameters,
            Optimizer& optimizer, Workers& workers, Unmerged unmerged, std::vector<float> residual)
      : options_(std::move(options)),
        momentum_(options_.optimizer.kind == OptimizerKind::kSgd
                      ? 0.0
                      : static_cast<double>(options_.optimizer.momentum)),
        foresight_(options_.optimizer.kind == OptimizerKind::kNesterov ? 1 : 0),
        shared_(std::move(shared)),
        residual_(std::move(residual)),
        parameters_(parameters),
        optimizer_(optimizer),
        workers_(workers),
        unmerged_(std::move(unmerged)) {
    LONGHAUL_CHECK(options_.optimizer.kind != OptimizerKind::kAdamW);
  }

  ByteBuffer take(const Part& part, Codec& codec, TakeOptions request) override {
    return take_gradient(codec, std::move(request), part.of(std::span(residual_)),
                         options_.recipe.kept_residual());
  }

  void sent(RoundId round, const CheckedPayload& payload) override {
    unmerged_.add(round, Unit::kGradient, payload);
  }

  // In gradients, as the residual is.
  void take_back(std::size_t step, RoundId round, const Part& part,
                 const PayloadView& message) override {
    const bool is_gradient = unmerged_.oldest(round).unit == Unit::kGradient;
    const float weight =
        is_gradient ? 1.0F : 1.0F / move_of_gradient(options_.optimizer, options_.lr.at(step));
    add(message, weight, part.of(std::span(residual_)));
  }

  void merge(std::size_t step, const Part& part, const Mean& mean) override {
    const Unit unit = unmerged_.oldest(mean.round).unit;
    unmerged_.remove(mean.round);
    const std::span shared = part.of(std::span(shared_));
    if (unit == Unit::kGradient)
      return step_with(mean, part, shared, options_.lr.at(step), optimizer_, workers_);
    for_each_tile(mean, workers_, [&](std::size_t first, std::span<const float> values) {
      kernels::add_scaled(values, -1.0F, shared.subspan(first, values.size()));
    });
  }

  void place(std::size_t next_step) override {
    const double lr = options_.lr.at(next_step);
    std::ranges::copy(shared_, parameters_.begin());
    if (momentum_ > 0 && !optimizer_.state().empty()) {
      // The velocity's own part in the steps to come: Σ μ^j over the rounds in flight.
      const std::size_t rounds = unmerged_.count(Unit::kGradient);
      const double coasting = powers_below(rounds + 1 + foresight_) - powers_below(1 + foresight_);
      kernels::add_scaled(optimizer_.state(), static_cast<float>(-lr * coasting), parameters_);
    }
    for (const UnmergedMessage& message : unmerged_) {
      const std::size_t age = next_step - message.round.step;
      const bool is_gradient = message.unit == Unit::kGradient;
      message.add_to(parameters_, is_gradient
                                      ? static_cast<float>(-lr * powers_below(age + foresight_))
                                      : -1.0F);
    }
  }

  // The rest of the movement of each gradient or velocity is kept: the late replica has moved by
  // it. The velocity stays: the same on all replicas.
  std::unique_ptr<MergeRule> become(Merge merge, std::size_t next_step) override {
    LONGHAUL_CHECK(merge == Merge::kLate);
    EngineOptions options = options_;
    options.recipe.plan.merge = merge;
    const float whole_move = move_of_gradient(options_.optimizer, options_.lr.at(next_step));
    unmerged_.set_weight(Unit::kGradient, whole_move);
    unmerged_.set_weight(Unit::kMove, 1.0F);
    std::ranges::copy(shared_, parameters_.begin());
    for (const UnmergedMessage& message : unmerged_) message.add_to(parameters_, -message.weight);
    kernels::add_scaled(residual_, -whole_move, parameters_);
    return make_late_rule(options, std::move(shared_), parameters_, optimizer_, workers_,
                          std::move(unmerged_));
  }

  void save(Extent extent, State& state) const override {
    unmerged_.save(extent, state);
    if (extent == Extent::kReplica) save_tensor("residual", residual_, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    Status loaded = unmerged_.load(extent, state, in_flight);
    if (extent == Extent::kShared || !loaded.ok()) return loaded;
    return load_tensor("residual", state, residual_);
  }

  [[nodiscard]] std::span<const float> shared() const override { return shared_; }
  [[nodiscard]] std::vector<float> residual() const override { return residual_; }

 private:
  // 1 + μ + … + μ^(count-1)
  [[nodiscard]] double powers_below(std::size_t count) const {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum = 1 + momentum_ * sum;
    return sum;
  }

  EngineOptions options_;
  double momentum_;
  std::size_t foresight_;  // Nesterov's steps look one velocity further
  std::vector<float> shared_;
  std::vector<float> residual_;  // of gradients
  std::span<float> parameters_;
  Optimizer& optimizer_;  // of the means, the same on all replicas
  Workers& workers_;
  Unmerged unmerged_;
};

}  // namespace

std::unique_ptr<MergeRule> make_ahead_rule(const EngineOptions& options, std::vector<float> shared,
                                           std::span<float> parameters, Optimizer& optimizer,
                                           Workers& workers, Unmerged unmerged,
                                           std::vector<float> residual) {
  return std::make_unique<AheadRule>(options, std::move(shared), parameters, optimizer, workers,
                                     std::move(unmerged), std::move(residual));
}

}  // namespace longhaul
