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
constexpr std::string_view kStands = "stands";
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
        stands_(initial.begin(), initial.end()),
        moved_(initial.size()),
        pulled_(initial.size()),
        delta_(initial.size()),
        unmerged_(initial.size(), parts) {}

  std::span<const float> update_of(const StepContext& now, std::span<const float> gradient,
                                   std::span<float> parameters) override {
    own_.step(0, parameters, gradient, now.lr);
    std::ranges::copy(stands_, delta_.begin());
    kernels::add_scaled(parameters, -1.0F, delta_);
    kernels::add_scaled(pulled_, 1.0F, delta_);
    return delta_;
  }

  std::span<const float> update_without_gradient(const StepContext& /*now*/) override {
    return pulled_;
  }

  void accept(std::span<const float> parameters) override {
    for (std::size_t i = 0; i < moved_.size(); ++i) moved_[i] += stands_[i] - parameters[i];
    std::ranges::copy(parameters, stands_.begin());
    std::ranges::fill(pulled_, 0.0F);
  }

  void sent(const StepContext& /*now*/, RoundId round, ByteView payload) override {
    unmerged_.add(round, Unit::kMove, payload);
    if (!payload.empty()) std::ranges::fill(unmerged_.part_of(round).of(std::span(moved_)), 0.0F);
  }

  // It stays where it is, and what it has not told is that much more.
  void take_back(const StepContext& /*now*/, RoundId round, const PayloadView& message,
                 std::span<float> residual) override {
    add(message, 1.0F, residual);
    add(message, 1.0F, unmerged_.part_of(round).of(std::span(moved_)));
  }

  void merge(const StepContext& /*now*/, const Part& part, const Mean& mean,
             std::span<float> /*parameters*/) override {
    unmerged_.remove(mean.round);
    outer_.step(part.first, part.of(std::span(shared_)), *mean.values, local_.outer_lr);
    go_on_from(told(mean.round, part), part);
  }

  void place(const StepContext& /*next*/, std::span<const float> /*residual*/,
             std::span<float> parameters) override {
    std::ranges::copy(stands_, parameters.begin());
  }

  void save(Extent extent, State& state) const override {
    outer_.save(state, kOuterOptimizer);
    unmerged_.save(extent, state);
    if (extent == Extent::kShared) return;
    own_.save(state);
    save_tensor(kStands, stands_, state);
    save_tensor(kMoved, moved_, state);
    save_tensor(kPulled, pulled_, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    Status loaded = outer_.load(state, kOuterOptimizer);
    if (loaded.ok()) loaded = unmerged_.load(extent, state, in_flight);
    if (extent == Extent::kShared) return loaded;
    if (loaded.ok()) loaded = own_.load(state);
    if (loaded.ok()) loaded = load_tensor(kStands, state, stands_);
    if (loaded.ok()) loaded = load_tensor(kMoved, state, moved_);
    if (loaded.ok()) loaded = load_tensor(kPulled, state, pulled_);
    return loaded;
  }

  [[nodiscard]] std::span<const float> shared(
      std::span<const float> /*parameters*/) const override {
    return shared_;
  }

 private:
  // y = shared - unmerged, of the part of that round: what all others know of this replica.
  std::span<const float> told(RoundId merged, const Part& part) {
    const std::span<float> out = part.of(std::span(delta_));
    std::ranges::copy(part.of(std::span<const float>(shared_)), out.begin());
    for (const UnmergedMessage& message : unmerged_) {
      if (message.round.part == merged.part) message.add_to(delta_, -1.0F);
    }
    return out;
  }

  // DiLoCo: x = y - moved. Streaming DiLoCo: x = mixing·x + (1 - mixing)·y, and what that moves is
  // part of the next update, which is y - x.
  void go_on_from(std::span<const float> y, const Part& part) {
    const std::span<float> x = part.of(std::span(stands_));
    const std::span<float> moved = part.of(std::span(moved_));
    const std::span<float> pulled = part.of(std::span(pulled_));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (local_.mixing) {
        const float distance = *local_.mixing * (y[i] - x[i]);
        pulled[i] += distance - moved[i];
        moved[i] = distance;
      }
      x[i] = y[i] - moved[i];
    }
  }

  LocalSteps local_;
  std::vector<float> shared_;
  Optimizer own_;
  Optimizer outer_;            // the same on all replicas
  std::vector<float> stands_;  // x: where this replica is
  std::vector<float> moved_;   // since its last message
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
