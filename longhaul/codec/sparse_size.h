// How large a sparse payload will be, and whether a dense one would be smaller.
#pragma once

#include <cstddef>

#include "longhaul/codec/value_format.h"

namespace longhaul {

// Elements that a ratio keeps: rounded, at least one unless there are none.
std::size_t kept_count(std::size_t elements, double keep_ratio);

// Expected bytes of a sparse payload with `kept` elements at random places.
double expected_sparse_bytes(ValueFormat format, std::size_t elements, std::size_t kept);

bool dense_is_smaller(ValueFormat format, std::size_t elements, std::size_t kept);

}  // namespace longhaul
