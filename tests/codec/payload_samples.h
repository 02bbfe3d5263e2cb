// One small payload of each kind, and mixtures of kinds, for tests of what reads them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"
#include "tests/codec/codec_cases.h"
#include "tests/codec/test_data.h"

namespace longhaul {

inline ByteBuffer encoded(const CodecOptions& spec, double keep_ratio, std::size_t elements,
                          std::uint64_t seed) {
  Workers workers(1);
  std::vector<float> update = testing_data::normal_update(elements, seed);
  return make_case({.spec = spec}, elements, workers)
      ->take({.residual = update, .keep_ratio = keep_ratio, .seed = seed});
}

// Every kind of payload, in formats with and without a grid.
inline std::vector<ByteBuffer> payload_of_each_kind(std::size_t elements, std::uint64_t seed = 1) {
  using enum CodecKind;
  using enum ValueFormat;
  return {
      encoded({.kind = kDense, .values = kFp32}, 1.0, elements, seed),
      encoded({.kind = kDense, .values = k4Bit}, 1.0, elements, seed + 1),
      encoded({.kind = kSign, .values = k1Bit}, 1.0, elements, seed + 2),
      encoded({.kind = kThreshold, .values = kBf16, .threshold = 0.015F}, 1.0, elements, seed + 3),
      encoded({.kind = kThreshold, .values = k2Bit, .threshold = 0.01F}, 1.0, elements, seed + 4),
      encoded({.kind = kRandomK, .values = k8Bit}, 0.1, elements, seed + 5),
      encoded({.kind = kCocktail, .values = k4Bit}, 0.05, elements, seed + 6),
      encoded({.kind = kLowRank, .values = kFp32, .rank = 2}, 1.0, elements, seed + 7),
      encoded({.kind = kLowRank, .values = kBf16, .rank = 2}, 1.0, elements, seed + 8),
  };
}

}  // namespace longhaul
