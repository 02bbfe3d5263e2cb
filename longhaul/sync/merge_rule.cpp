#include "longhaul/sync/merge_rule.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/sync/anchor_rule.h"
#include "longhaul/sync/outer_rule.h"
#include "longhaul/sync/unmerged.h"

namespace longhaul {
namespace {

// DD-EF-SGD and its special cases: nobody moves until the mean is there.
class OptimizerRule final : public MergeRule {
 public:
  OptimizerRule(const OptimizerSpec& spec, std::size_t elements) : optimizer_(spec, elements) {}

  std::span<const float> update_of(const StepContext& /*now*/, std::span<const float> gradient,
                                   std::span<float> /*parameters*/) override {
    return gradient;
  }

  void merge(const StepContext& now, const Part& part, const Mean& mean,
             std::span<float> parameters) override {
    optimizer_.step(part.first, part.of(parameters), *mean.values, now.lr);
  }

  void save(Extent /*extent*/, State& state) const override { optimizer_.save(state); }

  Status load(Extent /*extent*/, const State& state,
              std::span<const RoundId> /*in_flight*/) override {
    return optimizer_.load(state);
  }

  [[nodiscard]] std::span<const float> shared(std::span<const float> parameters) const override {
    return parameters;
  }

 private:
  Optimizer optimizer_;
};

// Rules that leave the shared model between merges keep it apart.
class SharedApart : public MergeRule {
 public:
  explicit SharedApart(std::span<const float> initial) : shared_(initial.begin(), initial.end()) {}

  [[nodiscard]] std::span<const float> shared(
      std::span<const float> /*parameters*/) const override {
    return shared_;
  }

 protected:
  std::vector<float> shared_;  // NOLINT(*-non-private-member-*): rules of this file only
};

// DGA: x = shared - Σ lr·g over the replica's own gradients whose mean is still on its way.
class OwnStepRule final : public SharedApart {
 public:
  using SharedApart::SharedApart;

  std::span<const float> update_of(const StepContext& /*now*/, std::span<const float> gradient,
                                   std::span<float> /*parameters*/) override {
    newest_.assign(gradient.begin(), gradient.end());
    return gradient;
  }

  void sent(const StepContext& now, RoundId round, ByteView /*payload*/) override {
    unmerged_.push_back({.round = round, .lr = now.lr, .gradient = std::exchange(newest_, {})});
  }

  void merge(const StepContext& /*now*/, const Part& part, const Mean& mean,
             std::span<float> /*parameters*/) override {
    LONGHAUL_CHECK_EQ(part.count, shared_.size());
    LONGHAUL_CHECK(!unmerged_.empty() && unmerged_.front().round == mean.round);
    // With the learning rate of the step it was born in, or the swap would not be even.
    kernels::add_scaled(*mean.values, static_cast<float>(-unmerged_.front().lr), shared_);
    unmerged_.pop_front();
  }

  // Formed anew instead of corrected: rounding does not add up over the run.
  void place(const StepContext& /*next*/, std::span<const float> /*residual*/,
             std::span<float> parameters) override {
    std::ranges::copy(shared_, parameters.begin());
    for (const Own& own : unmerged_) {
      if (own.gradient.empty()) continue;
      kernels::add_scaled(own.gradient, static_cast<float>(-own.lr), parameters);
    }
  }

  void save(Extent extent, State& state) const override {
    std::vector<double> rates;
    for (const Own& own : unmerged_) {
      rates.push_back(own.lr);
      if (extent == Extent::kShared) continue;
      std::vector<float>& saved = state.tensors[name_in_round("gradient", own.round)];
      saved = own.gradient;
      saved.resize(shared_.size());
    }
    state.values["rates"] = rates;
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
    return Done{};
  }

 private:
  struct Own {
    RoundId round;
    double lr = 0;
    std::vector<float> gradient;  // empty: there was none
  };
  std::vector<float> newest_;
  std::deque<Own> unmerged_;
};

// The late correction and the look-ahead, and the way from one to the other.
//
// Late: every replica runs an optimizer of its own, sends what its steps moved, and swaps its own
// message for the mean when that arrives: x = shared - unmerged - residual, always. In the words of
// OLCO3, y = shared - unmerged, and y - x, which it sends, is the residual.
//
// Ahead: one optimizer on the means, the same everywhere, and each gradient is computed where the
// shared model will be once everything in flight has landed, as far as this replica can tell from
// its own messages.
class DelayedRule final : public SharedApart {
 public:
  DelayedRule(Merge merge, const OptimizerSpec& spec, std::span<const float> initial,
              const LocalSteps& local, const std::vector<Part>& parts)
      : SharedApart(initial),
        is_late_(merge == Merge::kLate),
        compensates_delay_(local.compensates_delay),
        optimizer_(spec, initial.size()),
        momentum_(spec.kind == OptimizerKind::kSgd ? 0.0 : static_cast<double>(spec.momentum)),
        foresight_(spec.kind == OptimizerKind::kNesterov ? 1 : 0),
        delta_(initial.size()),
        unmerged_(initial.size(), parts) {
    LONGHAUL_CHECK(is_late_ || spec.kind != OptimizerKind::kAdamW);
  }

  std::span<const float> update_of(const StepContext& now, std::span<const float> gradient,
                                   std::span<float> parameters) override {
    if (!is_late_) return gradient;
    std::ranges::copy(parameters, delta_.begin());
    optimizer_.step(0, parameters, gradient, now.lr);
    kernels::add_scaled(parameters, -1.0F, delta_);
    return delta_;
  }

  void sent(const StepContext& /*now*/, RoundId round, ByteView payload) override {
    unmerged_.add(round, own_unit(), payload);
  }

  // In the unit of the residual, which is that of the present rule.
  void take_back(const StepContext& now, RoundId round, const PayloadView& message,
                 std::span<float> residual) override {
    const Unit unit = unmerged_.oldest(round).unit;
    const bool is_own = unit == own_unit();
    add(message, is_own ? 1.0F : move_of(unit, now) / move_of(own_unit(), now), residual);
  }

  void merge(const StepContext& now, const Part& part, const Mean& mean,
             std::span<float> /*parameters*/) override {
    const std::span<float> shared = part.of(std::span(shared_));
    const Unit unit = unmerged_.oldest(mean.round).unit;
    unmerged_.remove_oldest();
    if (unit == Unit::kGradient && !is_late_) {
      optimizer_.step(part.first, shared, *mean.values, now.lr);
    } else {
      kernels::add_scaled(*mean.values, -move_of(unit, now), shared);
    }
  }

  void place(const StepContext& next, std::span<const float> residual,
             std::span<float> parameters) override {
    std::ranges::copy(shared_, parameters.begin());
    if (is_late_) {
      kernels::add_scaled(residual, -1.0F, parameters);
      if (!compensates_delay_) return;
    } else if (momentum_ > 0) {
      // The velocity's own part in the steps to come: Σ μ^j over the rounds in flight.
      const std::size_t rounds = unmerged_.count(Unit::kGradient);
      const double coasting = powers_below(rounds + 1 + foresight_) - powers_below(1 + foresight_);
      kernels::add_scaled(optimizer_.state(), static_cast<float>(-next.lr * coasting), parameters);
    }
    for (const UnmergedMessage& message : unmerged_) {
      const std::size_t age = next.step - message.round.step;
      const bool is_foreseen = message.unit == Unit::kGradient && !is_late_;
      message.add_to(parameters,
                     -(is_foreseen ? static_cast<float>(next.lr * powers_below(age + foresight_))
                                   : move_of(message.unit, next)));
    }
  }

  // What a gradient or a velocity has still to move is kept: it goes where the other rule has it.
  void change_to(Merge merge, const StepContext& next, std::span<float> residual) override {
    const bool will_be_late = merge == Merge::kLate;
    LONGHAUL_CHECK(will_be_late || merge == Merge::kAhead);
    if (will_be_late == is_late_) return;
    const float whole_move = move_of(Unit::kGradient, next);
    if (will_be_late) {
      for (float& e : residual) e *= whole_move;  // the velocity stays: the same on all replicas
    } else {
      LONGHAUL_CHECK(optimizer_.state().size() <= shared_.size());  // no AdamW
      for (float& e : residual) e /= whole_move;
      // A velocity of one replica's own cannot become the common one: its rest is sent.
      double rest = momentum_;
      if (foresight_ > 0) rest *= momentum_;
      if (momentum_ > 0)
        kernels::add_scaled(optimizer_.state(), static_cast<float>(rest), residual);
      std::ranges::fill(optimizer_.state(), 0.0F);
    }
    is_late_ = will_be_late;
  }

  void save(Extent extent, State& state) const override {
    if (has_optimizer_in(extent)) optimizer_.save(state);
    unmerged_.save(extent, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    Status loaded = has_optimizer_in(extent) ? optimizer_.load(state) : Done{};
    return loaded.ok() ? unmerged_.load(extent, state, in_flight) : loaded;
  }

 private:
  [[nodiscard]] Unit own_unit() const { return is_late_ ? Unit::kMove : Unit::kGradient; }
  // A late replica's optimizer is its own.
  [[nodiscard]] bool has_optimizer_in(Extent extent) const {
    return extent == Extent::kReplica || !is_late_;
  }
  // How far a mean of that unit moves the shared model in the end, without an optimizer for it.
  [[nodiscard]] float move_of(Unit unit, const StepContext& now) const {
    return unit == Unit::kMove ? 1.0F : static_cast<float>(now.lr / (1 - momentum_));
  }
  // 1 + μ + … + μ^(count-1)
  [[nodiscard]] double powers_below(std::size_t count) const {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum = 1 + momentum_ * sum;
    return sum;
  }

  bool is_late_;
  bool compensates_delay_;
  Optimizer optimizer_;  // late: of this replica; ahead: common
  double momentum_;
  std::size_t foresight_;  // Nesterov's steps look one velocity further
  std::vector<float> delta_;
  Unmerged unmerged_;
};

}  // namespace

void MergeRule::take_back(const StepContext& /*now*/, RoundId /*round*/, const PayloadView& message,
                          std::span<float> residual) {
  add(message, 1.0F, residual);
}

void MergeRule::change_to(Merge /*merge*/, const StepContext& /*next*/,
                          std::span<float> /*residual*/) {
  LONGHAUL_CHECK(false && "this rule cannot be changed during a run");
}

std::unique_ptr<MergeRule> make_merge_rule(Merge merge, const OptimizerSpec& optimizer,
                                           std::span<const float> initial, const LocalSteps& local,
                                           const std::vector<Part>& parts) {
  LONGHAUL_CHECK(parts.size() <= 1 || merge == Merge::kLate || merge == Merge::kOuter);
  switch (merge) {
    case Merge::kOptimizer:
      return std::make_unique<OptimizerRule>(optimizer, initial.size());
    case Merge::kOwnStep:
      return std::make_unique<OwnStepRule>(initial);
    case Merge::kLate:
    case Merge::kAhead:
      return std::make_unique<DelayedRule>(merge, optimizer, initial, local, parts);
    case Merge::kOuter:
      return make_outer_rule(optimizer, initial, local, parts);
    case Merge::kAnchor:
      return make_anchor_rule(optimizer, initial, local);
  }
  return nullptr;
}

}  // namespace longhaul
