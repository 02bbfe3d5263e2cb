#include "longhaul/round/round_mean.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/low_rank.h"

namespace longhaul {

RoundMean mean_of_round(std::span<const WeightedPayload> sent, std::size_t elements,
                        Workers& workers) {
  float members = 0.0F;
  std::size_t all = 0;
  for (const WeightedPayload& one : sent) {
    members += one.weight;
    all += one.payload.size();
  }
  std::vector<WeightedPayload> shares(sent.begin(), sent.end());
  for (WeightedPayload& one : shares) one.weight /= members;
  RoundMean mean;
  if (std::optional<ByteBuffer> factors = sum_of_factors(shares)) {
    mean.payload = CheckedPayload::of_sealed(std::move(*factors), elements);
    mean.down.assign(sent.size(), {.way = WayDown::kUnion, .bytes = mean.payload.size()});
    return mean;
  }
  mean.payload = encode_union(shares, elements, workers);
  const DownLoad dense{.way = WayDown::kDense,
                       .bytes = kPayloadHeaderBytes + elements * sizeof(float)};
  const DownLoad together{.way = WayDown::kUnion, .bytes = mean.payload.size()};
  for (const WeightedPayload& one : sent) {
    const DownLoad forwarded{.way = WayDown::kForwarded, .bytes = all - one.payload.size()};
    mean.down.push_back(
        std::min({dense, together, forwarded},
                 [](const DownLoad& a, const DownLoad& b) { return a.bytes < b.bytes; }));
  }
  return mean;
}

}  // namespace longhaul
