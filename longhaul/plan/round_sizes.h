// How many bytes a round puts on each link, by keep ratio: the codec's own size function and the
// cheapest way down, tabulated so that a decision takes microseconds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/round/round_mean.h"

namespace longhaul {

// The bytes of a round at one keep ratio.
struct RoundSize {
  double keep_ratio = 1;
  double up = 0;    // bytes of one replica's update
  double down = 0;  // bytes that come back to each replica
  WayDown way = WayDown::kDense;
};

// The keep ratios among which a planner chooses.
struct RatioRange {
  double least = 0.0003;
  double most = 1.0;
};

class RoundSizes {
 public:
  // `way`: how means come down; nothing: the cheapest exact way. Without layers, a codec that needs
  // them counts as one that sends all.
  RoundSizes(const CodecOptions& codec, std::size_t elements, std::size_t replicas,
             const RatioRange& limits = {}, std::optional<WayDown> way = {},
             LayerTable layers = {});

  // The same for another number of replicas.
  [[nodiscard]] RoundSizes with(std::size_t replicas) const;
  [[nodiscard]] std::size_t replicas() const { return replicas_; }

  // Exact, from the codec.
  [[nodiscard]] RoundSize exact(double keep_ratio) const;
  // The bytes of a mean that comes down that way. Union: supports counted as independent; those of
  // gradients overlap more.
  [[nodiscard]] double bytes_down(double keep_ratio, WayDown way) const;

  // The table: ratios ascend to the most in equal proportions, from the least on.
  [[nodiscard]] std::span<const RoundSize> table() const { return table_; }
  // Between two rows of the table, linearly.
  [[nodiscard]] RoundSize at(double keep_ratio) const;

  [[nodiscard]] double dense_bytes() const { return 4.0 * static_cast<double>(elements_); }

 private:
  [[nodiscard]] double bytes_up(double keep_ratio) const;
  [[nodiscard]] double bytes_down(double keep_ratio, WayDown way, double bytes_up) const;

  CodecOptions codec_;
  std::size_t elements_;
  std::size_t replicas_;
  std::optional<WayDown> way_;
  LayerTable layers_;
  std::vector<RoundSize> table_;
};

}  // namespace longhaul
