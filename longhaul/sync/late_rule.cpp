#include "longhaul/sync/late_rule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_select.h"
#include "longhaul/codec/update_reader.h"
#include "longhaul/sync/ahead_rule.h"

namespace longhaul {
namespace {

constexpr std::size_t kBlock = 4096;  // elements of a tile that are merged together, in L1

// The entries of a mean and of the replica's own message in one tile, and their sums: over a block
// of the tile if all of them are sparse, else over all of it. Between blocks the sums of a block
// are zero, and nothing is marked.
struct MergeScratch {
  // Decodes the part of payload `number` in a tile: first the terms of the mean, then the own one.
  void decode(const PayloadView& payload, std::size_t tile, std::size_t number) {
    payload.entries_of(tile, decoded[number]);
    next[number] = 0;
  }

  // Adds the entries of a block, and calls fetch(position) for each.
  template <typename Fetch>
  void add(std::size_t number, std::size_t begin, float weight, std::array<float, kBlock>& out,
           const Fetch& fetch) {
    const TileEntries& all = decoded[number];
    std::size_t k = next[number];
    for (; k < all.positions.size() && all.positions[k] < begin + kBlock; ++k) {
      const std::size_t position = all.positions[k];
      const std::size_t i = position - begin;
      out[i] += weight * all.values[k];
      marks[i / 64] |= std::uint64_t{1} << (i % 64);
      fetch(position);
    }
    next[number] = k;
  }

  // The marked positions, ascending; clears the marks.
  std::span<const std::uint16_t> take_positions() {
    positions.clear();
    append_marked(marks, positions);
    marks.fill(0);
    return positions;
  }

  std::vector<TileEntries> decoded;
  std::vector<std::size_t> next;  // in `decoded`: those before are added
  std::array<float, kBlock> mean_sum{};
  std::array<float, kBlock> own_sum{};
  std::array<std::uint64_t, kernels::mark_words(kBlock)> marks{};
  Scratch<std::uint16_t> positions;
  // For a whole tile.
  std::vector<float> sum;
  std::vector<float> move;
  TileEntries entries;
};

class LateRule final : public MergeRule {
 public:
  LateRule(EngineOptions options, std::vector<float> shared, std::span<float> parameters,
           Optimizer& optimizer, Workers& workers, Unmerged unmerged)
      : options_(std::move(options)),
        parameters_(parameters),
        optimizer_(optimizer),
        workers_(workers),
        unmerged_(std::move(unmerged)) {
    const bool is_stored = options_.computes && !options_.averages_in_place;
    if (is_stored) {
      stored_ = std::move(shared);
    } else if (!shared.empty()) {
      std::ranges::copy(shared, parameters_.begin());
    }
    shared_ = is_stored ? std::span(stored_) : parameters_;
  }

  ByteBuffer take(const Part& part, Codec& codec, TakeOptions request) override {
    std::vector<WeightedPayload> announced = unmerged_.of(part);
    request.shared = part.of(std::span<const float>(shared_));
    request.position = part.of(parameters_);
    request.announced = announced;
    request.limit = kAbsurd;
    ByteBuffer payload = codec.take_difference(request, workers_);
    if (options_.recipe.kept_residual() == 1.0F || payload.empty()) return payload;
    // The dropped part of the residual leaves the position too.
    announced.push_back({.payload = CheckedPayload::of_sealed(payload, part.count)});
    request.announced = announced;
    std::vector<float> lost(part.count);
    read_difference(request, workers_, lost);
    kernels::add_scaled(lost, 1.0F - options_.recipe.kept_residual(), part.of(parameters_));
    return payload;
  }

  // Without compensation a replica goes on from the shared model.
  void sent(RoundId round, const CheckedPayload& payload) override {
    const bool compensates = options_.recipe.local.compensates_delay;
    unmerged_.add(round, Unit::kMove, payload, compensates ? 1.0F : 0.0F);
    if (compensates || payload.empty()) return;
    add(payload.view(), 1.0F, unmerged_.part_of(round).of(parameters_));
  }

  // It does not count as announced any more. An update that did not count moves the replica
  // instead.
  void take_back(std::size_t /*step*/, RoundId round, const Part& part,
                 const PayloadView& message) override {
    const UnmergedMessage& own = unmerged_.oldest(round);
    const float counted = own.payload.empty() ? 0.0F : own.weight;
    const float wanted = own.unit == Unit::kMove ? 1.0F : own.weight;
    if (counted != wanted) add(message, counted - wanted, part.of(parameters_));
    unmerged_.clear_oldest(round);
  }

  // Where neither the mean nor the replica's own message has anything, no bit changes: so it does
  // not matter in which form the mean comes.
  void merge(std::size_t step, const Part& part, const Mean& mean) override {
    if (!mean.in_place.empty()) return unmerged_.remove(mean.round);  // x is the mean
    const UnmergedMessage& own = unmerged_.oldest(mean.round);
    const float factor =
        own.unit == Unit::kMove ? 1.0F : move_of_gradient(options_.optimizer, options_.lr.at(step));
    const bool is_sparse = mean.is_sparse() && !own.is_dense();
    run_tile_ranges(tile_count(part.count), workers_, [&](std::size_t tile, std::size_t end) {
      MergeScratch scratch;
      for (; tile < end; ++tile) {
        if (is_sparse) {
          merge_sparse(tile, mean, own, factor, scratch);
        } else {
          merge_dense(tile, mean, own, factor, scratch);
        }
      }
    });
    unmerged_.remove(mean.round);
  }

  std::unique_ptr<MergeRule> become(Merge merge, std::size_t next_step) override {
    LONGHAUL_CHECK(merge == Merge::kAhead);
    EngineOptions options = options_;
    options.recipe.plan.merge = merge;
    std::vector<float> rest = residual();
    rest.resize(shared_.size());
    const float whole_move = move_of_gradient(options_.optimizer, options_.lr.at(next_step));
    for (float& e : rest) e /= whole_move;
    // A velocity of one replica's own cannot become the common one: its rest is sent.
    const OptimizerOptions& spec = options_.optimizer;
    const std::span velocity = optimizer_.state();
    LONGHAUL_CHECK_LE(velocity.size(), rest.size());  // no AdamW
    if (!velocity.empty()) {
      const float momentum = spec.momentum;
      const bool looks_further = spec.kind == OptimizerKind::kNesterov;
      kernels::add_scaled(velocity, looks_further ? momentum * momentum : momentum, rest);
    }
    optimizer_.clear();
    if (!options_.computes) stored_.assign(shared_.begin(), shared_.end());
    return make_ahead_rule(options, std::move(stored_), parameters_, optimizer_, workers_,
                           std::move(unmerged_), std::move(rest));
  }

  void save(Extent extent, State& state) const override { unmerged_.save(extent, state); }

  Status load(Extent extent, const State& state, std::span<const RoundId> in_flight) override {
    return unmerged_.load(extent, state, in_flight);
  }

  [[nodiscard]] std::span<const float> shared() const override { return shared_; }

  [[nodiscard]] std::vector<float> residual() const override {
    std::vector<float> rest;
    if (stored_.empty()) return rest;
    rest.resize(shared_.size());
    for (const Part& part : unmerged_.parts()) {
      const std::vector<WeightedPayload> announced = unmerged_.of(part);
      read_difference({.shared = part.of(std::span<const float>(shared_)),
                       .position = part.of(std::span<const float>(parameters_)),
                       .announced = announced},
                      workers_, part.of(std::span(rest)));
    }
    return rest;
  }

 private:
  static std::span<float> tile_of(std::span<float> all, const Part& part, std::size_t tile) {
    return part.of(all).subspan(tile_begin(tile), tile_size(tile, part.count));
  }

  void merge_sparse(std::size_t tile, const Mean& mean, const UnmergedMessage& own, float factor,
                    MergeScratch& scratch) {
    const std::size_t terms = mean.terms.size();
    scratch.decoded.resize(terms + 1);
    scratch.next.resize(terms + 1);
    for (std::size_t i = 0; i < terms; ++i) scratch.decode(mean.terms[i].payload.view(), tile, i);
    const bool has_own = !own.payload.empty() && options_.computes;
    if (has_own) scratch.decode(own.payload.view(), tile, terms);
    const std::span shared = tile_of(shared_, own.part, tile);
    const std::span x = tile_of(parameters_, own.part, tile);
    // Both were last touched a whole model ago.
    const auto fetch = [&](std::size_t i) {
      __builtin_prefetch(&shared[i], 1);
      __builtin_prefetch(&x[i], 1);
    };
    for (std::size_t begin = 0; begin < shared.size(); begin += kBlock) {
      for (std::size_t i = 0; i < terms; ++i)
        scratch.add(i, begin, mean.terms[i].weight, scratch.mean_sum, fetch);
      if (has_own) scratch.add(terms, begin, own.weight, scratch.own_sum, fetch);
      for (const std::size_t i : scratch.take_positions()) {
        // Added to zero, it is never -0, which would change the sign of a zero.
        const float move = 0.0F + factor * std::exchange(scratch.mean_sum[i], 0.0F);
        shared[begin + i] -= move;
        if (options_.computes) x[begin + i] -= move - std::exchange(scratch.own_sum[i], 0.0F);
      }
    }
  }

  // The same arithmetic.
  void merge_dense(std::size_t tile, const Mean& mean, const UnmergedMessage& own, float factor,
                   MergeScratch& scratch) {
    const std::span values = mean.tile(tile, scratch.sum, scratch.entries);
    scratch.move.assign(values.size(), 0.0F);
    kernels::add_scaled(values, factor, scratch.move);
    if (options_.computes && own.is_dense()) return merge_anew(tile, own, scratch);
    kernels::subtract(scratch.move, tile_of(shared_, own.part, tile));
    if (!options_.computes) return;
    if (!own.payload.empty())
      own.payload.view().add_tile(tile, -own.weight, scratch.move, scratch.entries);
    kernels::subtract(scratch.move, tile_of(parameters_, own.part, tile));
  }

  // Where every element changes: not by a correction, which rounds, so that a replica that has held
  // nothing back is exactly where the shared model and its unmerged messages say.
  void merge_anew(std::size_t tile, const UnmergedMessage& own, MergeScratch& scratch) {
    const std::span shared = tile_of(shared_, own.part, tile);
    const std::span x = tile_of(parameters_, own.part, tile);
    const std::vector<WeightedPayload> announced = unmerged_.of(own.part);
    scratch.sum.resize(x.size());
    UpdateReader({.shared = own.part.of(std::span<const float>(shared_)),
                  .position = own.part.of(parameters_),
                  .announced = announced})
        .read(tile_begin(tile), scratch.sum);
    kernels::subtract(scratch.move, shared);
    std::ranges::copy(shared, x.begin());
    for (const WeightedPayload& other : announced) {
      if (&other.payload.view() != &own.payload.view())
        other.payload.view().add_tile(tile, -other.weight, x, scratch.entries);
    }
    kernels::subtract(scratch.sum, x);
  }

  EngineOptions options_;
  // Empty where nobody computes, or means are formed in place: then x is the shared model.
  std::vector<float> stored_;
  std::span<float> shared_;
  std::span<float> parameters_;  // x
  Optimizer& optimizer_;
  Workers& workers_;
  Unmerged unmerged_;
};

}  // namespace

float move_of_gradient(const OptimizerOptions& optimizer, double lr) {
  const bool has_momentum = optimizer.kind != OptimizerKind::kSgd;
  const double momentum = has_momentum ? static_cast<double>(optimizer.momentum) : 0.0;
  return static_cast<float>(lr / (1 - momentum));
}

std::unique_ptr<MergeRule> make_late_rule(const EngineOptions& options, std::vector<float> shared,
                                          std::span<float> parameters, Optimizer& optimizer,
                                          Workers& workers, Unmerged unmerged) {
  return std::make_unique<LateRule>(options, std::move(shared), parameters, optimizer, workers,
                                    std::move(unmerged));
}

}  // namespace longhaul
