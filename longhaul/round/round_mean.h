// The mean of a round: summed in replica order with fixed arithmetic, the same bits for everyone.
// Pure: shared by the simulated exchange and the hub.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/base/workers.h"
#include "longhaul/codec/payload.h"

namespace longhaul {

// The forms in which a mean can come back.
enum class WayDown : std::uint8_t {
  kDense,      // every element in fp32
  kUnion,      // the elements that anyone sent, or factors on a common basis, in fp32
  kForwarded,  // the others' payloads as they are, summed by each replica in replica order
  kTwoWay,     // compressed again, with a residual of the mean's own (MeanCompressor)
};

// The form and the bytes in which one replica gets a mean.
struct DownLoad {
  WayDown way = WayDown::kDense;
  std::size_t bytes = 0;
};

// The mean of a round, and its way to each replica.
struct RoundMean {
  CheckedPayload payload;      // all of it: a union, or dense where that is smaller, or two-way
  std::vector<DownLoad> down;  // per member: the cheapest way for it
};

// `sent` is what all members sent with their weights, in replica order. The divisor is the weight
// of the members, not of those who had something to send: what was held back or returned comes
// later. Precondition: payloads have that many elements.
RoundMean mean_of_round(std::span<const WeightedPayload> sent, std::size_t elements,
                        Workers& workers);

}  // namespace longhaul
