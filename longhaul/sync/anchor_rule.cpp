#include "longhaul/sync/anchor_rule.h"

#include <deque>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"

namespace longhaul {
namespace {

class AnchorRule final : public MergeRule {
 public:
  AnchorRule(const EngineOptions& options, std::vector<float> shared, std::span<float> parameters,
             Workers& workers)
      : stays_(options.recipe.local.mixing.value_or(0.0F)),
        momentum_(options.recipe.local.outer_momentum),
        anchor_(std::move(shared)),
        velocity_(anchor_.size()),
        parameters_(parameters),
        workers_(workers) {}

  // Nothing is held back: how far it is from the anchor it tells anew each time.
  ByteBuffer take(const Part& /*part*/, Codec& codec, TakeOptions request) override {
    if (!request.move && !(largest_magnitude(parameters_, workers_) < kAbsurd)) return {};
    std::vector<float> distance(anchor_.size());
    run_tiles(anchor_.size(), workers_, [&](std::size_t first, std::size_t count) {
      if (request.move) request.move(first, count);
      kernels::difference(std::span(anchor_).subspan(first, count),
                          parameters_.subspan(first, count),
                          std::span(distance).subspan(first, count));
    });
    request.residual = distance;
    request.increment = {};
    return codec.take(request);
  }

  void sent(RoundId round, const CheckedPayload& /*payload*/) override {
    unmerged_.push_back({.round = round, .anchor = anchor_});
  }

  void take_back(std::size_t /*step*/, RoundId /*round*/, const Part& /*part*/,
                 const PayloadView& /*message*/) override {}

  // A round that was born in the same step holds replicas before the pull: the mean of where they
  // are afterwards follows from it, as all are pulled towards the same anchor.
  void merge(std::size_t step, const Part& part, const Mean& mean) override {
    LONGHAUL_CHECK_EQ(part.count, anchor_.size());
    LONGHAUL_CHECK(!unmerged_.empty() && unmerged_.front().round == mean.round);
    const Round merged = std::move(unmerged_.front());
    unmerged_.pop_front();
    for_each_tile(mean, workers_, [&](std::size_t first, std::span<const float> values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t at = first + i;
        const float mean_of_replicas = merged.anchor[at] - merged.share * values[i];
        velocity_[at] = momentum_ * velocity_[at] + (mean_of_replicas - anchor_[at]);
        anchor_[at] += velocity_[at];
      }
      pull(parameters_, first, values.size());
    });
    if (unmerged_.empty() || unmerged_.back().round.step != step) return;
    pull(unmerged_.back().anchor, 0, anchor_.size());
    unmerged_.back().share *= stays_;
  }

  void save(Extent /*extent*/, State& state) const override {
    save_tensor("anchor_velocity", velocity_, state);
    std::vector<double> shares;
    for (const Round& round : unmerged_) {
      shares.push_back(static_cast<double>(round.share));
      save_tensor(name_in_round("anchor", round.round), round.anchor, state);
    }
    state.values["shares"] = shares;
  }

  Status load(Extent /*extent*/, const State& state, std::span<const RoundId> in_flight) override {
    const auto shares = LONGHAUL_TRY(state.value<std::vector<double>>("shares"));
    if (shares.size() != in_flight.size())
      return Error{ErrorCode::kMismatch, "shares: not one for each round in flight"};
    Status loaded = load_tensor("anchor_velocity", state, velocity_);
    for (std::size_t i = 0; i < in_flight.size() && loaded.ok(); ++i) {
      Round& round = unmerged_.emplace_back(
          Round{.round = in_flight[i], .anchor = anchor_, .share = static_cast<float>(shares[i])});
      loaded = load_tensor(name_in_round("anchor", round.round), state, round.anchor);
    }
    return loaded;
  }

  [[nodiscard]] std::span<const float> shared() const override { return anchor_; }
  [[nodiscard]] std::vector<float> residual() const override {
    return std::vector<float>(anchor_.size());
  }

 private:
  struct Round {
    RoundId round;
    std::vector<float> anchor;  // that the round's updates are measured from
    float share = 1.0F;         // of the distance that the pulls of its own step have left
  };

  void pull(std::span<float> values, std::size_t first, std::size_t count) const {
    for (std::size_t i = first; i < first + count; ++i)
      values[i] = stays_ * values[i] + (1.0F - stays_) * anchor_[i];
  }

  float stays_;
  float momentum_;
  std::vector<float> anchor_;
  std::vector<float> velocity_;  // of the anchor; the same on all replicas
  std::span<float> parameters_;  // where this replica is
  Workers& workers_;
  std::deque<Round> unmerged_;
};

}  // namespace

std::unique_ptr<MergeRule> make_anchor_rule(const EngineOptions& options, std::vector<float> shared,
                                            std::span<float> parameters, Workers& workers) {
  return std::make_unique<AnchorRule>(options, std::move(shared), parameters, workers);
}

}  // namespace longhaul
