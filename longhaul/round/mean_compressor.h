// Two-way compression: the mean of a round is compressed again, once for all members, with a
// residual of its own.
#pragma once

#include <cstdint>
#include <memory>
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
  // `workers` must outlive it.
  MeanCompressor(const CodecSpec& spec, const LayerTable& layers, std::size_t elements,
                 Workers& workers);

  // The mean becomes what everyone is sent of it and of what was held back before; the rest is held
  // back. Rounds come in order.
  void compress(RoundMean& mean, double keep_ratio, std::uint64_t seed);

  // E in OLCO3: what no replica has heard of yet.
  [[nodiscard]] std::span<const float> residual() const { return residual_; }

  void save(State& state) const;
  // On an error nothing has changed.
  Status load(const State& state);

 private:
  std::unique_ptr<Codec> codec_;
  std::vector<float> residual_;
};

}  // namespace longhaul
