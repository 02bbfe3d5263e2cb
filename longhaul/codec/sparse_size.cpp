#include "longhaul/codec/sparse_size.h"

#include <algorithm>
#include <cmath>

#include "longhaul/base/check.h"
#include "longhaul/codec/payload.h"
#include "longhaul/codec/position_coding.h"
#include "longhaul/codec/tile.h"

namespace longhaul {

std::size_t kept_count(std::size_t elements, double keep_ratio) {
  LONGHAUL_CHECK(keep_ratio > 0.0 && keep_ratio <= 1.0);
  const double kept = std::round(keep_ratio * static_cast<double>(elements));
  return std::min(elements, std::max<std::size_t>(1, static_cast<std::size_t>(kept)));
}

double expected_sparse_bytes(ValueFormat format, std::size_t elements, std::size_t kept) {
  if (elements == 0) return kPayloadHeaderBytes;
  const double density = static_cast<double>(kept) / static_cast<double>(elements);
  const auto tiles = static_cast<double>(tile_count(elements));
  const double per_tile = static_cast<double>(kept) / tiles;
  const double position_bytes = per_tile * expected_position_bits(density) / 8.0;
  constexpr double kPaddingBytes = 1.0;  // half a byte at the end of each bit string
  const double varints =
      2.0 + (per_tile >= 128 ? 1.0 : 0.0) + (position_bytes / 4.0 >= 128 ? 1.0 : 0.0);
  const auto values =
      static_cast<double>(value_bytes(format, static_cast<std::size_t>(std::ceil(per_tile))));
  const double rice_byte = std::min(1.0, per_tile);
  return kPayloadHeaderBytes +
         tiles * (varints + rice_byte + kPaddingBytes + position_bytes + values);
}

bool dense_is_smaller(ValueFormat format, std::size_t elements, std::size_t kept) {
  const std::size_t dense = kPayloadHeaderBytes + value_bytes(format, elements);
  return static_cast<double>(dense) <= expected_sparse_bytes(format, elements, kept);
}

}  // namespace longhaul
