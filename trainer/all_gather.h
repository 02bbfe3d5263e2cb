// The one operation that a collective needs from its ranks.
#pragma once

#include <functional>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul::trainer {

// Waits until every rank has called it, and returns the bytes of each, in rank order. All ranks
// hand over the same number of bytes, above 0. One call at a time. An error names the rank that is
// gone, and is final.
using AllGather = std::function<Result<std::vector<ByteBuffer>>(ByteView own)>;

}  // namespace longhaul::trainer
