#include "longhaul/sync/outer_rule.h"

#include <algorithm>
#include <vector>

#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/sync/unmerged.h"

namespace longhaul {
namespace {

// Names in a state.
constexpr std::string_view kOuterOptimizer = "outer_optimizer";
constexpr std::string_view kMoved = "moved";
constexpr std::string_view kPulled = "pulled";

class OuterRule final : public MergeRule {
 public:
  OuterRule(const OptimizerSpec& optimizer, std::span<const float> initial, const LocalSteps& local,
            const std::vector<Part>& parts)
      : local_(local),
        shared_(initial.begin(), initial.end()),
        own_(optimizer, initial.size()),
        outer_({.kind = local.outer, .momentum = local.outer_momentum}, initial.size()),
        moved_(initial.size()),
        pulled_(initial.size()),
        delta_(initial.size()),
        unmerged_(initial.size(), parts) {}

  std::span<const float> update_of(const StepContext& now, std::span<const float> gradient,
                                   std::span<float> parameters) override {
    std::ranges::copy(parameters, delta_.begin());
    own_.step(0, parameters, gradient, now.lr);
    kernels::add_scaled(parameters, -1.0F, delta_);
    kernels::add_scaled(delta_, 1.0F, moved_);
    kernels::add_scaled(pulled_, 1.0F, delta_);
    std::ranges::fill(pulled_, 0.0F);
    return delta_;
  }

  void sent(const StepContext& /*now*/, RoundId round, ByteView payload) override {
    unmerged_.add(round, Unit::kMove, payload);
    std::ranges::fill(unmerged_.part_of(round).of(std::span(moved_)), 0.0F);
  }

  void merge(const StepContext& /*now*/, const Part& part, const Mean& mean,
             std::span<float> parameters) override {
    (void)unmerged_.oldest(mean.round);
    unmerged_.remove_oldest();
    outer_.step(part.first, part.of(std::span(shared_)), *mean.values, local_.outer_lr);
    if (local_.mixing) pull(part, parameters);
  }

  void place(const StepContext& /*next*/, std::span<const float> /*residual*/,
             std::span<float> parameters) override {
    told(parameters);
    kernels::add_scaled(moved_, -1.0F, parameters);
  }

  void save(Extent extent, State& state) const override {
    outer_.save(state, kOuterOptimizer);
    unmerged_.save(extent, state);
    if (extent == Extent::kShared) return;
    own_.save(state);
    save_tensor(kMoved, moved_, state);
    save_tensor(kPulled, pulled_, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    Status loaded = outer_.load(state, kOuterOptimizer);
    if (loaded.ok()) loaded = unmerged_.load(extent, state, in_flight);
    if (extent == Extent::kShared) return loaded;
    if (loaded.ok()) loaded = own_.load(state);
    if (loaded.ok()) loaded = load_tensor(kMoved, state, moved_);
    if (loaded.ok()) loaded = load_tensor(kPulled, state, pulled_);
    return loaded;
  }

  [[nodiscard]] std::span<const float> shared(
      std::span<const float> /*parameters*/) const override {
    return shared_;
  }

 private:
  // y = shared - unmerged: what all others know of this replica.
  void told(std::span<float> out) const {
    std::ranges::copy(shared_, out.begin());
    for (const UnmergedMessage& message : unmerged_) message.add_to(out, -1.0F);
  }

  // Streaming DiLoCo: x = mixing·x + (1 - mixing)·y. What that moves is part of the next update,
  // which is y - x.
  void pull(const Part& part, std::span<const float> parameters) {
    told(delta_);
    for (std::size_t i = part.first; i < part.first + part.count; ++i) {
      const float moved = *local_.mixing * (delta_[i] - parameters[i]);
      pulled_[i] += moved - moved_[i];
      moved_[i] = moved;
    }
  }

  LocalSteps local_;
  std::vector<float> shared_;
  Optimizer own_;
  Optimizer outer_;            // the same on all replicas
  std::vector<float> moved_;   // by local steps since the last message
  std::vector<float> pulled_;  // by means, and in no update yet
  std::vector<float> delta_;
  Unmerged unmerged_;
};

}  // namespace

std::unique_ptr<MergeRule> make_outer_rule(const OptimizerSpec& optimizer,
                                           std::span<const float> initial, const LocalSteps& local,
                                           const std::vector<Part>& parts) {
  return std::make_unique<OuterRule>(optimizer, initial, local, parts);
}

}  // namespace longhaul
