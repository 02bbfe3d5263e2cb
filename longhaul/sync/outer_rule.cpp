#include "longhaul/sync/outer_rule.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/sync/unmerged.h"

namespace longhaul {
namespace {

// Names in a state.
constexpr std::string_view kOuterOptimizer = "outer_optimizer";
constexpr std::string_view kFrom = "from";
constexpr std::string_view kResidual = "residual";

// The next message is made of the residual and from - x, where `from` is where the replica
// would be if it had not moved since its last message.
class OuterRule final : public MergeRule {
 public:
  OuterRule(const EngineOptions& options, std::vector<float> shared, std::span<float> parameters,
            Workers& workers)
      : local_(options.recipe.local),
        kept_(options.recipe.kept_residual()),
        shared_(std::move(shared)),
        outer_({.kind = local_.outer, .momentum = local_.outer_momentum}, shared_.size()),
        parameters_(parameters),
        workers_(workers),
        unmerged_(shared_.size(), parts_of(options, shared_.size())) {
    if (!options.computes) return;
    from_ = shared_;
    residual_.resize(shared_.size());
  }

  ByteBuffer take(const Part& part, Codec& codec, TakeOptions request) override {
    const std::span from = part.of(std::span(from_));
    const std::span x = part.of(parameters_);
    const std::span held_back = part.of(std::span(residual_));
    if (!request.move && !(largest_magnitude(x, workers_) < kAbsurd)) return {};
    run_tiles(x.size(), workers_, [&](std::size_t first, std::size_t count) {
      if (request.move) request.move(first, count);
      const std::span here = x.subspan(first, count);
      const std::span moved = from.subspan(first, count);
      kernels::difference(moved, here, moved);
      kernels::feed(held_back.subspan(first, count), moved);
      std::ranges::copy(here, moved.begin());
    });
    request.increment = {};  // it is fed
    return take_gradient(codec, std::move(request), held_back, kept_);
  }

  void sent(RoundId round, const CheckedPayload& payload) override {
    unmerged_.add(round, Unit::kMove, payload);
  }

  // It stays where it is, and what it has not told is that much more.
  void take_back(std::size_t /*step*/, RoundId /*round*/, const Part& part,
                 const PayloadView& message) override {
    add(message, 1.0F, part.of(std::span(from_)));
  }

  void merge(std::size_t /*step*/, const Part& part, const Mean& mean) override {
    unmerged_.remove(mean.round);
    const std::span shared = part.of(std::span(shared_));
    const kernels::OptimizerStep step = outer_.begin(part.first, local_.outer_lr);
    for_each_tile(mean, workers_, [&](std::size_t first, std::span<const float> values) {
      const std::span here = shared.subspan(first, values.size());
      outer_.step(step, part.first + first, here, values);
      if (!from_.empty()) go_on_from(mean.round, part, first, here);
    });
  }

  void save(Extent extent, State& state) const override {
    outer_.save(state, kOuterOptimizer);
    unmerged_.save(extent, state);
    if (extent == Extent::kShared) return;
    save_tensor(kFrom, from_, state);
    save_tensor(kResidual, residual_, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    Status loaded = outer_.load(state, kOuterOptimizer);
    if (loaded.ok()) loaded = unmerged_.load(extent, state, in_flight);
    if (extent == Extent::kShared) return loaded;
    if (loaded.ok()) loaded = load_tensor(kFrom, state, from_);
    if (loaded.ok()) loaded = load_tensor(kResidual, state, residual_);
    return loaded;
  }

  [[nodiscard]] std::span<const float> shared() const override { return shared_; }

  [[nodiscard]] std::vector<float> residual() const override {
    std::vector<float> untold = residual_;
    if (untold.empty()) return untold;
    kernels::add_scaled(from_, 1.0F, untold);
    kernels::subtract(parameters_, untold);
    return untold;
  }

 private:
  // The tile that begins at `first` in its part. y = shared - unmerged is what all others know of
  // this replica. DiLoCo: x = y - moved. Streaming DiLoCo: x = mixing·x + (1 - mixing)·y, and what
  // that moves is part of the next update, which is y - x.
  void go_on_from(RoundId merged, const Part& part, std::size_t first,
                  std::span<const float> shared) {
    const std::span x = part.of(parameters_).subspan(first, shared.size());
    const std::span from = part.of(std::span(from_)).subspan(first, shared.size());
    Scratch<float> moved(shared.size());
    kernels::difference(from, x, moved);
    std::ranges::copy(shared, from.begin());  // y, from here on
    TileEntries scratch;
    for (const UnmergedMessage& message : unmerged_) {
      if (message.round.part == merged.part && !message.payload.empty())
        message.payload.view().add_tile(first / kTileElements, -1.0F, from, scratch);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (local_.mixing) moved[i] = *local_.mixing * (from[i] - x[i]);
      x[i] = from[i] - moved[i];
    }
  }

  LocalSteps local_;
  float kept_;
  std::vector<float> shared_;
  Optimizer outer_;              // the same on all replicas
  std::vector<float> from_;      // this and the next: empty where nobody computes
  std::vector<float> residual_;  // what compression held back
  std::span<float> parameters_;  // x: where this replica is
  Workers& workers_;
  Unmerged unmerged_;
};

}  // namespace

std::unique_ptr<MergeRule> make_outer_rule(const EngineOptions& options, std::vector<float> shared,
                                           std::span<float> parameters, Workers& workers) {
  return std::make_unique<OuterRule>(options, std::move(shared), parameters, workers);
}

}  // namespace longhaul
