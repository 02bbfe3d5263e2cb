// Every element, in any value format; with one bit per element this is the sign codec.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

ByteBuffer take_dense(const TakeOptions& request, ValueFormat format, Workers& workers);

// The size of the payload.
std::size_t dense_bytes(ValueFormat format, std::size_t elements);

}  // namespace longhaul
