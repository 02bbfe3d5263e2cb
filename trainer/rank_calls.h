// The two operations that a collective needs from its ranks. All ranks make the same calls in the
// same order, one at a time. An error names the rank that is gone, and is final.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul::trainer {

// Waits until every rank has called it, and returns the bytes of each, in rank order. All ranks
// hand over the same number of bytes, above 0.
using AllGather = std::function<Result<std::vector<ByteBuffer>>(ByteView own)>;

// Puts the sum over all ranks in place of the values, of which all have the same number. The bits
// are the same on every rank, in an order of summing that belongs to the implementation.
using AllReduce = std::function<Status(std::span<float> values)>;

}  // namespace longhaul::trainer
