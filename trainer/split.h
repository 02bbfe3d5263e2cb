// Which samples of the training data belong to which replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul::trainer {

enum class SplitKind : std::uint8_t {
  kIid,        // shuffled
  kShards,     // sorted by label, cut into shards, a few shards each
  kDirichlet,  // each replica has its own mixture of labels, drawn from Dirichlet(beta)
};

// "iid", "shards", "dirichlet"
Result<SplitKind> parse_split(std::string_view name);

struct SplitOptions {
  SplitKind kind = SplitKind::kIid;
  double beta = 0.5;                   // dirichlet: 0.1 is a hard case, 0.5 a mild one
  std::size_t shards_per_replica = 2;  // shards
};

// The shares of `replicas` replicas as sample numbers. Every sample is in exactly one share and the
// sizes of shares differ by at most one (shards: by at most shards_per_replica). The same seed
// gives the same split.
Result<std::vector<std::vector<std::uint32_t>>> split(std::span<const std::uint8_t> labels,
                                                      std::size_t replicas,
                                                      const SplitOptions& config,
                                                      std::uint64_t seed);

}  // namespace longhaul::trainer
