// How many bytes a round puts on each link, by keep ratio: the codec's own size function and the
// cheapest way down, tabulated so that a decision takes microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/round/round_mean.h"

namespace longhaul {

struct RoundSize {
  double keep_ratio = 1;
  double up = 0;    // bytes of one replica's update
  double down = 0;  // bytes that come back to each replica
  WayDown way = WayDown::kDense;
};

// What each way down would cost. Union: supports counted as independent; those of gradients overlap
// more. Two-way needs a residual at the hub.
struct WaysDown {
  double dense = 0;
  double joined = 0;
  double forwarded = 0;
  double two_way = 0;
};

struct RatioRange {
  double least = 0.0003;
  double most = 1.0;
};

// How means come down: the cheapest exact way, as small as an update, or, without a hub, as the
// updates of all others.
enum class MeansDown : std::uint8_t { kExact, kTwoWay, kForwarded };

class RoundSizes {
 public:
  // Without layers, a codec that needs them counts as one that sends all.
  RoundSizes(const CodecOptions& codec, std::size_t elements, std::size_t replicas,
             const RatioRange& limits = {}, MeansDown means = MeansDown::kExact,
             LayerTable layers = {});

  // The same for another number of replicas.
  [[nodiscard]] RoundSizes with(std::size_t replicas) const;
  [[nodiscard]] std::size_t replicas() const { return replicas_; }

  // Exact, from the codec.
  [[nodiscard]] RoundSize exact(double keep_ratio) const;
  [[nodiscard]] WaysDown ways_down(double keep_ratio) const;

  // The table: ratios ascend to the most in equal proportions, from the least on.
  [[nodiscard]] std::span<const RoundSize> table() const { return table_; }
  // Between two rows of the table, linearly.
  [[nodiscard]] RoundSize at(double keep_ratio) const;

  [[nodiscard]] double dense_bytes() const { return 4.0 * static_cast<double>(elements_); }

 private:
  CodecOptions codec_;
  std::size_t elements_;
  std::size_t replicas_;
  MeansDown means_;
  LayerTable layers_;
  std::vector<RoundSize> table_;
};

}  // namespace longhaul
