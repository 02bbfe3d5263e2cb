#include "trainer/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "trainer/random.h"

namespace longhaul::trainer {
namespace {

using Samples = std::vector<std::uint32_t>;
constexpr std::size_t kLabels = std::numeric_limits<std::uint8_t>::max() + 1;
constexpr std::size_t kShardsPerReplica = 2;

Samples shuffled(std::size_t count, Random& random) {
  Samples samples(count);
  std::iota(samples.begin(), samples.end(), 0U);
  shuffle(std::span(samples), random);
  return samples;
}

// Part `index` of `parts` nearly equal parts.
std::span<const std::uint32_t> part_of(const Samples& samples, std::size_t index,
                                       std::size_t parts) {
  const std::size_t begin = samples.size() * index / parts;
  const std::size_t end = samples.size() * (index + 1) / parts;
  return std::span(samples).subspan(begin, end - begin);
}

Error wrong(std::string message) {
  return Error{ErrorCode::kInvalidArgument, "split: " + std::move(message)};
}

// `pieces`: for each replica.
Status check_size(std::size_t samples, std::size_t replicas, std::size_t pieces) {
  if (replicas == 0) return wrong("needs at least one replica");
  if (pieces == 0 || pieces > std::max<std::size_t>(samples, 1))
    return wrong("expected 1 to " + std::to_string(samples) + " shards per replica, got " +
                 std::to_string(pieces));
  if (samples / pieces < replicas)
    return wrong(std::to_string(samples) + " samples are too few for " + std::to_string(replicas) +
                 " replicas");
  return Done{};
}

using Mixture = std::array<double, kLabels>;

// Labels that do not occur have no weight.
Mixture draw_mixture(const std::array<Samples, kLabels>& by_label, double beta, Random& random) {
  Mixture mixture{};
  for (std::size_t label = 0; label < kLabels; ++label) {
    if (!by_label[label].empty()) mixture[label] = random.gamma(beta);
  }
  return mixture;
}

// A label drawn by weight among those that have samples left. Where a replica has no weight on any
// of them (its own are used up), each remaining sample is as likely.
std::size_t draw_label(const Mixture& mixture, const std::array<Samples, kLabels>& left,
                       Random& random) {
  const auto total_of = [&](const auto& weight_of) {
    double total = 0;
    for (std::size_t label = 0; label < kLabels; ++label) {
      if (!left[label].empty()) total += weight_of(label);
    }
    return total;
  };
  const auto pick = [&](const auto& weight_of, double total) {
    double point = random.uniform() * total;
    std::size_t last = 0;
    for (std::size_t label = 0; label < kLabels; ++label) {
      const double weight = left[label].empty() ? 0 : weight_of(label);
      if (weight <= 0) continue;
      last = label;
      if ((point -= weight) < 0) break;
    }
    return last;  // rounding may leave `point` at zero after the last label
  };
  const auto own = [&](std::size_t label) { return mixture[label]; };
  if (const double total = total_of(own); total > 0) return pick(own, total);
  const auto size = [&](std::size_t label) { return static_cast<double>(left[label].size()); };
  return pick(size, total_of(size));
}

}  // namespace

Result<Shares> split_iid(std::size_t samples, std::size_t replicas, std::uint64_t seed) {
  LONGHAUL_TRY(check_size(samples, replicas, 1));
  Random random(seed, Draws::kSplit);
  const Samples order = shuffled(samples, random);
  Shares shares(replicas);
  for (std::size_t i = 0; i < replicas; ++i) {
    const auto part = part_of(order, i, replicas);
    shares[i].assign(part.begin(), part.end());
  }
  return shares;
}

Result<Shares> split_shards(std::span<const std::uint8_t> labels, std::size_t replicas,
                            std::size_t shards_per_replica, std::uint64_t seed) {
  LONGHAUL_TRY(check_size(labels.size(), replicas, shards_per_replica));
  Random random(seed, Draws::kSplit);
  Samples order = shuffled(labels.size(), random);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t sample) { return labels[sample]; });
  const std::size_t shards = replicas * shards_per_replica;
  const Samples deal = shuffled(shards, random);
  Shares shares(replicas);
  for (std::size_t i = 0; i < shards; ++i) {
    const auto part = part_of(order, deal[i], shards);
    Samples& share = shares[i / shards_per_replica];
    share.insert(share.end(), part.begin(), part.end());
  }
  return shares;
}

// Replicas take turns, one sample each, so that none of them finds only what the others left (Hsu
// et al. 2019, arXiv:1909.06335, with turns).
Result<Shares> split_dirichlet(std::span<const std::uint8_t> labels, std::size_t replicas,
                               double beta, std::uint64_t seed) {
  LONGHAUL_TRY(check_size(labels.size(), replicas, 1));
  if (!(beta > 0) || !std::isfinite(beta))
    return wrong("beta is a number above 0, got " + std::to_string(beta));
  Random random(seed, Draws::kSplit);
  std::array<Samples, kLabels> left;
  for (const std::uint32_t sample : shuffled(labels.size(), random)) {
    left[labels[sample]].push_back(sample);
  }
  std::vector<Mixture> mixtures;
  for (std::size_t i = 0; i < replicas; ++i) mixtures.push_back(draw_mixture(left, beta, random));
  Shares shares(replicas);
  for (std::size_t taken = 0; taken < labels.size(); ++taken) {
    const std::size_t replica = taken % replicas;
    Samples& of_label = left[draw_label(mixtures[replica], left, random)];
    shares[replica].push_back(of_label.back());
    of_label.pop_back();
  }
  return shares;
}

Result<Shares> split(std::span<const std::uint8_t> labels, std::size_t replicas,
                     const DataOptions& options, std::uint64_t seed) {
  if (options.split == "iid") return split_iid(labels.size(), replicas, seed);
  if (options.split == "shards") return split_shards(labels, replicas, kShardsPerReplica, seed);
  if (options.split == "dirichlet")
    return split_dirichlet(labels, replicas, options.dirichlet, seed);
  return wrong("expected iid, shards or dirichlet, got \"" + options.split + '"');
}

}  // namespace longhaul::trainer
