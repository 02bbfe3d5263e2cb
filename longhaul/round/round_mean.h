// The mean of a round: summed in replica order with fixed arithmetic, the same bits for everyone.
// Pure: shared by the simulated exchange and the hub.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "longhaul/base/workers.h"

namespace longhaul {

// What one member sent; an empty payload is an update without elements.
struct Submission {
  float weight = 1.0F;
  ByteView payload;
};

// The forms in which a mean can come back.
enum class WayDown : std::uint8_t {
  kDense,      // every element in fp32
  kUnion,      // the elements that anyone sent, or factors on a common basis, in fp32
  kForwarded,  // the others' payloads as they are, summed by each replica in replica order
  kTwoWay,     // compressed again, with a residual of the mean's own (MeanCompressor)
};

struct DownLoad {
  WayDown way = WayDown::kDense;
  std::size_t bytes = 0;
};

struct RoundMean {
  std::vector<float> values;
  ByteBuffer payload;  // the values as one payload: a union, or dense where that is smaller,
                       // or two-way
  std::vector<DownLoad> down;  // per submission: the cheapest way for that member
};

// `submissions` are those of all members, in replica order. The divisor is the weight of the
// members, not of those who had something to send: what was held back or returned comes later.
Result<RoundMean> mean_of_round(std::span<const Submission> submissions, std::size_t elements,
                                Workers& workers);

}  // namespace longhaul
