// Which samples of the training data belong to which replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"

namespace longhaul::trainer {

// The shares of replicas as sample numbers. Every sample is in exactly one share and the sizes of
// shares differ by at most one (shards: by at most `shards_per_replica`). The same seed gives the
// same split.
using Shares = std::vector<std::vector<std::uint32_t>>;

// As `options.split` says: "iid", "shards" (two for each replica) or "dirichlet".
Result<Shares> split(std::span<const std::uint8_t> labels, std::size_t replicas,
                     const DataOptions& options, std::uint64_t seed);

// Shuffled.
Result<Shares> split_iid(std::size_t samples, std::size_t replicas, std::uint64_t seed);
// Sorted by label, cut into shards, a few shards each.
Result<Shares> split_shards(std::span<const std::uint8_t> labels, std::size_t replicas,
                            std::size_t shards_per_replica, std::uint64_t seed);
// Each replica has its own mixture of labels, drawn from Dirichlet(beta): 0.1 is a hard case, 0.5 a
// mild one.
Result<Shares> split_dirichlet(std::span<const std::uint8_t> labels, std::size_t replicas,
                               double beta, std::uint64_t seed);

}  // namespace longhaul::trainer
