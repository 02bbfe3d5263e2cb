// Two-way compression: the mean of a round is compressed again, once for all members, with a
// residual of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/codec.h"
#include "longhaul/round/round_mean.h"

namespace longhaul {

class MeanCompressor {
 public:
  struct Options {
    CodecOptions codec;
    LayerTable layers;
    std::size_t elements = 0;
    double keep_ratio = 1;
    std::uint64_t seed = 1;  // that of the replicas: who draws at random draws the same
    // The mean of this step is not compressed, and what was held back goes with it.
    std::optional<std::uint64_t> dense_step{};
  };
  // `workers` must outlive it.
  MeanCompressor(const Options& options, Workers& workers);

  // The mean of a round becomes what everyone is sent of it and of what was held back before; the
  // rest is held back. Rounds come in order.
  void compress(RoundMean& mean, std::uint64_t step);

  // E in OLCO3: what no replica has heard of yet.
  [[nodiscard]] std::span<const float> residual() const { return residual_; }

  void save(State& state) const;
  // On an error nothing has changed.
  Status load(const State& state);

 private:
  void drop_if_absurd(std::span<float> mean);

  double keep_ratio_;
  std::uint64_t seed_;
  std::optional<std::uint64_t> dense_step_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Codec> dense_;
  std::vector<float> residual_;
};

}  // namespace longhaul
