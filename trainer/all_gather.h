// The one operation that a collective needs from its ranks.
#pragma once

#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul::trainer {

class AllGather {
 public:
  virtual ~AllGather() = default;

  // Waits until every rank has called it, and returns the bytes of each, in rank order. All ranks
  // hand over the same number of bytes, above 0. One call at a time. An error names the rank that
  // is gone, and is final.
  virtual Result<std::vector<ByteBuffer>> gather(ByteView own) = 0;
};

}  // namespace longhaul::trainer
