#include "longhaul/sync/anchor_rule.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"

namespace longhaul {
namespace {

class AnchorRule final : public MergeRule {
 public:
  AnchorRule(const OptimizerSpec& optimizer, std::span<const float> initial,
             const LocalSteps& local)
      : stays_(local.mixing.value_or(0.0F)),
        momentum_(local.outer_momentum),
        own_(optimizer, initial.size()),
        anchor_(initial.begin(), initial.end()),
        velocity_(initial.size()),
        stands_(initial.begin(), initial.end()),
        delta_(initial.size()) {}

  std::span<const float> update_of(const StepContext& now, std::span<const float> gradient,
                                   std::span<float> parameters) override {
    own_.step(0, parameters, gradient, now.lr);
    std::ranges::fill(delta_, 0.0F);
    return now.has_round ? distance_of(parameters) : delta_;
  }

  std::span<const float> update_without_gradient(const StepContext& /*now*/) override {
    return distance_of(stands_);
  }

  void accept(std::span<const float> parameters) override {
    std::ranges::copy(parameters, stands_.begin());
  }

  [[nodiscard]] bool keeps_residual() const override { return false; }

  void sent(const StepContext& /*now*/, RoundId round, ByteView /*payload*/) override {
    unmerged_.push_back({.round = round, .anchor = anchor_});
  }

  // How far it is from the anchor it tells again in its next round.
  void take_back(const StepContext& /*now*/, RoundId /*round*/, const PayloadView& /*message*/,
                 std::span<float> /*residual*/) override {}

  // A round that was born in the same step holds replicas before the pull: the mean of where they
  // are afterwards follows from it, as all are pulled towards the same anchor.
  void merge(const StepContext& now, const Part& part, const Mean& mean,
             std::span<float> /*parameters*/) override {
    LONGHAUL_CHECK_EQ(part.count, anchor_.size());
    LONGHAUL_CHECK(!unmerged_.empty() && unmerged_.front().round == mean.round);
    const Round& merged = unmerged_.front();
    for (std::size_t i = 0; i < anchor_.size(); ++i) {
      const float mean_of_replicas = merged.anchor[i] - merged.share * (*mean.values)[i];
      velocity_[i] = momentum_ * velocity_[i] + (mean_of_replicas - anchor_[i]);
      anchor_[i] += velocity_[i];
    }
    unmerged_.pop_front();
    pull(stands_);
    if (unmerged_.empty() || unmerged_.back().round.step != now.step) return;
    pull(unmerged_.back().anchor);
    unmerged_.back().share *= stays_;
  }

  void place(const StepContext& /*next*/, std::span<const float> /*residual*/,
             std::span<float> parameters) override {
    std::ranges::copy(stands_, parameters.begin());
  }

  void save(Extent extent, State& state) const override {
    save_tensor("anchor_velocity", velocity_, state);
    std::vector<double> shares;
    for (const Round& round : unmerged_) {
      shares.push_back(static_cast<double>(round.share));
      save_tensor(name_in_round("anchor", round.round), round.anchor, state);
    }
    state.values["shares"] = shares;
    if (extent == Extent::kShared) return;
    save_tensor("stands", stands_, state);
    own_.save(state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    const auto shares = state.value<std::vector<double>>("shares");
    if (!shares.ok()) return shares.error();
    if (shares->size() != in_flight.size())
      return Error{ErrorCode::kMismatch, "shares: not one for each round in flight"};
    Status loaded = load_tensor("anchor_velocity", state, velocity_);
    for (std::size_t i = 0; i < in_flight.size() && loaded.ok(); ++i) {
      Round& round = unmerged_.emplace_back(Round{
          .round = in_flight[i], .anchor = anchor_, .share = static_cast<float>((*shares)[i])});
      loaded = load_tensor(name_in_round("anchor", round.round), state, round.anchor);
    }
    if (extent == Extent::kShared || !loaded.ok()) return loaded;
    loaded = load_tensor("stands", state, stands_);
    return loaded.ok() ? own_.load(state) : loaded;
  }

  [[nodiscard]] std::span<const float> shared(
      std::span<const float> /*parameters*/) const override {
    return anchor_;
  }

 private:
  struct Round {
    RoundId round;
    std::vector<float> anchor;  // what the round's updates are measured from
    float share = 1.0F;         // of that which was left by the pulls of the step it was born in
  };

  std::span<const float> distance_of(std::span<const float> stands) {
    std::ranges::copy(anchor_, delta_.begin());
    kernels::add_scaled(stands, -1.0F, delta_);
    return delta_;
  }

  void pull(std::span<float> values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = stays_ * values[i] + (1.0F - stays_) * anchor_[i];
  }

  float stays_;
  float momentum_;
  Optimizer own_;
  std::vector<float> anchor_;
  std::vector<float> velocity_;  // of the anchor; the same on all replicas
  std::vector<float> stands_;    // where this replica is
  std::vector<float> delta_;
  std::deque<Round> unmerged_;
};

}  // namespace

std::unique_ptr<MergeRule> make_anchor_rule(const OptimizerSpec& optimizer,
                                            std::span<const float> initial,
                                            const LocalSteps& local) {
  return std::make_unique<AnchorRule>(optimizer, initial, local);
}

}  // namespace longhaul
