// The k largest magnitudes of every 4096 elements (SparseLoCo's choice): each chunk sends its
// share.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

inline constexpr std::size_t kChunkElements = 4096;

class ChunkTopK final : public Codec {
 public:
  ChunkTopK(ValueFormat format, Workers& workers) : format_(format), workers_(workers) {}

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;

 private:
  ValueFormat format_;
  Workers& workers_;
};

}  // namespace longhaul
