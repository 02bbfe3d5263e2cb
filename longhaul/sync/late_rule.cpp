#include "longhaul/sync/late_rule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"
#include "longhaul/sync/ahead_rule.h"

namespace longhaul {
namespace {

constexpr std::string_view kAnnounced = "announced";  // in a state

constexpr std::size_t kAhead = 16;  // elements between a prefetch and its use

// Some elements of a tile, by position. Between tiles all values are zero and nothing is marked.
struct MarkedTile {
  explicit MarkedTile(std::size_t elements)
      : mean(std::min(elements, kTileElements)), own(mean.size()) {}

  void add(const PayloadView& payload, std::size_t tile, float weight, std::vector<float>& out) {
    payload.entries_of(tile, entries);
    for (std::size_t i = 0; i < entries.positions.size(); ++i) {
      const std::size_t position = entries.positions[i];
      out[position] += weight * entries.values[i];
      marks[position / 64] |= std::uint64_t{1} << (position % 64);
    }
  }

  // The marked positions, ascending; clears the marks.
  std::span<const std::uint16_t> take_positions(std::size_t count) {
    const std::span used = std::span(marks).first(kernels::mark_words(count));
    entries.positions.clear();
    append_marked(used, entries.positions);
    std::ranges::fill(used, 0U);
    return entries.positions;
  }

  std::vector<float> mean;
  std::vector<float> own;
  std::array<std::uint64_t, kernels::mark_words(kTileElements)> marks{};
  TileEntries entries;
};

class LateRule final : public MergeRule {
 public:
  LateRule(RuleSetup setup, std::vector<float> shared, std::span<float> parameters,
           Optimizer& optimizer, Workers& workers, Unmerged unmerged, std::vector<float> announced)
      : setup_(std::move(setup)),
        shared_(std::move(shared)),
        announced_(std::move(announced)),
        parameters_(parameters),
        optimizer_(optimizer),
        workers_(workers),
        unmerged_(std::move(unmerged)) {}

  ByteBuffer take(const StepContext& /*now*/, const Taking& taking) override {
    const std::span y = taking.part.of(std::span(announced_));
    const std::span x = taking.part.of(parameters_);
    ByteBuffer payload = taking.codec.take_difference({.announced = y,
                                                       .position = x,
                                                       .move = taking.move,
                                                       .preview = taking.preview,
                                                       .keep_ratio = taking.keep_ratio,
                                                       .seed = taking.seed},
                                                      workers_);
    if (taking.kept == 1.0F) return payload;
    // What is lost of the residual leaves the position too.
    run_tiles(x.size(), workers_, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) x[i] = y[i] - taking.kept * (y[i] - x[i]);
    });
    return payload;
  }

  // Without compensation a replica goes on from the shared model.
  void sent(const StepContext& /*now*/, RoundId round, ByteView payload) override {
    const bool compensates = setup_.local.compensates_delay;
    unmerged_.add(round, Unit::kMove, payload, compensates ? 1.0F : 0.0F);
    if (compensates || payload.empty()) return;
    const Part& part = unmerged_.part_of(round);
    const PayloadView view = PayloadView::parse(payload, part.count).value();
    add(view, 1.0F, part.of(std::span(announced_)));
    add(view, 1.0F, part.of(parameters_));
  }

  void take_back(const StepContext& /*now*/, RoundId round, const Part& part,
                 const PayloadView& message) override {
    const UnmergedMessage& own = unmerged_.oldest(round);
    add(message, own.unit == Unit::kMove ? 1.0F : own.weight, part.of(std::span(announced_)));
    unmerged_.clear_oldest(round);
  }

  void merge(const StepContext& now, const Part& part, const Mean& mean) override {
    const UnmergedMessage& own = unmerged_.oldest(mean.round);
    const float factor =
        own.unit == Unit::kMove ? 1.0F : move_of_gradient(setup_.optimizer, now.lr);
    const bool is_sparse = mean.is_sparse() && !(own.payload && own.payload->is_dense());
    const std::size_t tiles = tile_count(part.count);
    const std::vector<TileRange> ranges = split_tiles(tiles, workers_);
    while (marked_.size() < ranges.size()) marked_.emplace_back(shared_.size());
    workers_.run(ranges.size(), [&](std::size_t i) {
      MarkedTile& marked = marked_[i];
      std::vector<float> scratch;
      for (std::size_t tile = ranges[i].first; tile < ranges[i].end; ++tile) {
        // Sums of small corrections round: each tile is formed anew once in a while.
        if (is_sparse && tile != mean.round.step % tiles) {
          merge_sparse(tile, mean, own, factor, marked);
        } else {
          merge_dense(tile, mean, own, factor, scratch, marked.entries);
        }
      }
    });
    unmerged_.remove_oldest();
  }

  std::unique_ptr<MergeRule> become(Merge merge, const StepContext& next) override {
    LONGHAUL_CHECK(merge == Merge::kAhead);
    RuleSetup setup = setup_;
    setup.merge = merge;
    std::vector<float> rest = residual();
    rest.resize(shared_.size());
    const float whole_move = move_of_gradient(setup_.optimizer, next.lr);
    for (float& e : rest) e /= whole_move;
    // A velocity of one replica's own cannot become the common one: its rest is sent.
    const OptimizerSpec& spec = setup_.optimizer;
    const std::span velocity = optimizer_.state();
    LONGHAUL_CHECK_LE(velocity.size(), rest.size());  // no AdamW
    if (!velocity.empty()) {
      const float momentum = spec.momentum;
      const bool looks_further = spec.kind == OptimizerKind::kNesterov;
      kernels::add_scaled(velocity, looks_further ? momentum * momentum : momentum, rest);
    }
    optimizer_.clear();
    return make_ahead_rule(setup, std::move(shared_), parameters_, optimizer_, workers_,
                           std::move(unmerged_), std::move(rest));
  }

  void save(Extent extent, State& state) const override {
    unmerged_.save(extent, state);
    if (extent == Extent::kReplica) save_tensor(kAnnounced, announced_, state);
  }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    Status loaded = unmerged_.load(extent, state, in_flight);
    if (extent == Extent::kShared || !loaded.ok()) return loaded;
    return load_tensor(kAnnounced, state, announced_);
  }

  [[nodiscard]] std::span<const float> shared() const override { return shared_; }

  [[nodiscard]] std::vector<float> residual() const override {
    std::vector<float> rest = announced_;
    if (!rest.empty()) kernels::subtract(parameters_, rest);
    return rest;
  }

 private:
  static std::span<float> tile_of(std::span<float> all, const Part& part, std::size_t tile) {
    return part.of(all).subspan(tile_begin(tile), tile_size(tile, part.count));
  }

  void merge_sparse(std::size_t tile, const Mean& mean, const UnmergedMessage& own, float factor,
                    MarkedTile& marked) {
    for (const MeanTerm& term : mean.terms)
      marked.add(term.payload, tile, term.weight, marked.mean);
    if (own.payload && setup_.computes) marked.add(*own.payload, tile, own.weight, marked.own);
    const std::span shared = tile_of(shared_, own.part, tile);
    const std::span positions = marked.take_positions(shared.size());
    if (!setup_.computes) {
      for (const std::size_t i : positions)
        shared[i] += -factor * std::exchange(marked.mean[i], 0.0F);
      return;
    }
    const std::span x = tile_of(parameters_, own.part, tile);
    const std::span y = tile_of(announced_, own.part, tile);
    for (std::size_t k = 0; k < positions.size(); ++k) {
      // The three were last touched a whole model ago.
      const std::size_t soon = positions[std::min(k + kAhead, positions.size() - 1)];
      __builtin_prefetch(&shared[soon], 1);
      __builtin_prefetch(&x[soon], 1);
      __builtin_prefetch(&y[soon], 1);
      const std::size_t i = positions[k];
      const float move = -factor * std::exchange(marked.mean[i], 0.0F);
      const float correction = std::exchange(marked.own[i], 0.0F) + move;
      shared[i] += move;
      x[i] += correction;
      y[i] += correction;
    }
  }

  void merge_dense(std::size_t tile, const Mean& mean, const UnmergedMessage& own, float factor,
                   std::vector<float>& scratch, TileEntries& entries) {
    const std::span shared = tile_of(shared_, own.part, tile);
    kernels::add_scaled(mean.tile(tile, scratch, entries), -factor, shared);
    if (!setup_.computes) return;
    const std::span x = tile_of(parameters_, own.part, tile);
    const std::span y = tile_of(announced_, own.part, tile);
    scratch.resize(shared.size());
    kernels::difference(y, x, scratch);
    std::ranges::copy(shared, y.begin());
    for (const UnmergedMessage& other : unmerged_) {
      if (&other == &own || other.round.part != own.round.part || !other.payload) continue;
      other.payload->add_tile(tile, -other.weight, y, entries);
    }
    kernels::difference(y, scratch, x);
  }

  RuleSetup setup_;
  std::vector<float> shared_;
  std::vector<float> announced_;  // y; empty where nobody computes
  std::span<float> parameters_;   // x
  Optimizer& optimizer_;
  Workers& workers_;
  Unmerged unmerged_;
  std::vector<MarkedTile> marked_;  // saves fresh pages from merge to merge
};

}  // namespace

float move_of_gradient(const OptimizerSpec& optimizer, double lr) {
  const bool has_momentum = optimizer.kind != OptimizerKind::kSgd;
  const double momentum = has_momentum ? static_cast<double>(optimizer.momentum) : 0.0;
  return static_cast<float>(lr / (1 - momentum));
}

std::unique_ptr<MergeRule> make_late_rule(const RuleSetup& setup, std::vector<float> shared,
                                          std::span<float> parameters, Optimizer& optimizer,
                                          Workers& workers, Unmerged unmerged,
                                          std::vector<float> announced) {
  return std::make_unique<LateRule>(setup, std::move(shared), parameters, optimizer, workers,
                                    std::move(unmerged), std::move(announced));
}

}  // namespace longhaul
