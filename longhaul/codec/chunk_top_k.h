// The k largest magnitudes of every 4096 elements (SparseLoCo's choice): each chunk sends its
// share.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

inline constexpr std::size_t kChunkElements = 4096;

ByteBuffer take_top_of_chunks(const TakeOptions& request, ValueFormat format, Workers& workers);

// The expected size of the payload.
double chunk_top_k_bytes(ValueFormat format, std::size_t elements, double keep_ratio);

}  // namespace longhaul
