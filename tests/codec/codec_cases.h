// Every codec that the conformance suites run over: a new one joins with one line here.
#pragma once

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/codec/codec.h"

namespace longhaul {

struct CodecCase {
  CodecOptions spec;
  double keep_ratio = 1.0;

  [[nodiscard]] std::string name() const {
    const auto percent = static_cast<int>(1000.0 * keep_ratio);
    std::string text = spec.name() + "_keep_" + std::to_string(percent) + "_of_1000";
    std::ranges::replace_if(
        text, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return text;
  }
};

inline std::vector<CodecCase> codec_cases() {
  using enum CodecKind;
  using enum ValueFormat;
  return {
      {.spec = {.kind = kDense, .values = kFp32}},
      {.spec = {.kind = kDense, .values = kBf16}},
      {.spec = {.kind = kDense, .values = k8Bit}},
      {.spec = {.kind = kDense, .values = k4Bit}},
      {.spec = {.kind = kDense, .values = k2Bit}},
      {.spec = {.kind = kDense, .values = k1Bit}},
      {.spec = {.kind = kSign, .values = k1Bit}},
      {.spec = {.kind = kTopK, .values = kFp32}, .keep_ratio = 0.01},
      {.spec = {.kind = kTopK, .values = kFp32}, .keep_ratio = 0.3},
      {.spec = {.kind = kTopK, .values = kBf16}, .keep_ratio = 0.001},
      {.spec = {.kind = kTopK, .values = k8Bit}, .keep_ratio = 0.05},
      {.spec = {.kind = kTopK, .values = k4Bit}, .keep_ratio = 0.01},
      {.spec = {.kind = kTopK, .values = k2Bit}, .keep_ratio = 0.01},
      {.spec = {.kind = kTopK, .values = k2Bit}, .keep_ratio = 1.0},
      {.spec = {.kind = kChunkTopK, .values = kFp32}, .keep_ratio = 0.01},
      {.spec = {.kind = kChunkTopK, .values = kBf16}, .keep_ratio = 0.2},
      {.spec = {.kind = kChunkTopK, .values = k8Bit}, .keep_ratio = 0.05},
      {.spec = {.kind = kChunkTopK, .values = k4Bit}, .keep_ratio = 1.0 / 64},
      {.spec = {.kind = kChunkTopK, .values = k2Bit}, .keep_ratio = 1.0 / 64},
      {.spec = {.kind = kThreshold, .values = kFp32, .threshold = 0.02F}, .keep_ratio = 0.1},
      {.spec = {.kind = kThreshold, .values = kBf16, .threshold = 0.025F}, .keep_ratio = 0.01},
      {.spec = {.kind = kThreshold, .values = k4Bit, .threshold = 0.0F}, .keep_ratio = 1.0},
      {.spec = {.kind = kRandomK, .values = kFp32}, .keep_ratio = 0.01},
      {.spec = {.kind = kRandomK, .values = kBf16}, .keep_ratio = 0.7},
      {.spec = {.kind = kRandomK, .values = k2Bit}, .keep_ratio = 0.1},
      {.spec = {.kind = kCocktail, .values = kFp32}, .keep_ratio = 0.01},
      {.spec = {.kind = kCocktail, .values = k4Bit}, .keep_ratio = 0.05},
      {.spec = {.kind = kCocktail, .values = k4Bit}, .keep_ratio = 0.4},
      {.spec = {.kind = kLowRank, .values = kFp32, .rank = 4}},
      {.spec = {.kind = kLowRank, .values = kBf16, .rank = 2}},
      {.spec = {.kind = kSharedLowRank, .values = kFp32, .rank = 4}},
      {.spec = {.kind = kSharedLowRank, .values = kBf16, .rank = 2}},
  };
}

// A convolution, a matrix, a bias and the odd rest, as far as `elements` reaches.
inline LayerTable layers_of(std::size_t elements) {
  LayerTable layers;
  std::size_t offset = 0;
  const auto append = [&](std::string name, std::vector<std::int64_t> shape) {
    std::size_t count = 1;
    for (const std::int64_t side : shape) count *= static_cast<std::size_t>(side);
    if (offset + count > elements) return;
    layers.push_back(
        {.name = std::move(name), .offset = offset, .count = count, .shape = std::move(shape)});
    offset += count;
  };
  append("conv.weight", {16, 3, 3, 3});
  append("conv.bias", {16});
  append("norm.weight", {1, 33});
  append("linear.weight", {96, 300});
  append("linear.bias", {96});
  append("wide.weight", {20, 1500});
  append("tall.weight", {2000, 24});
  if (offset < elements) append("rest", {static_cast<std::int64_t>(elements - offset)});
  return layers;
}

inline std::unique_ptr<Codec> make_case(const CodecCase& codec, std::size_t elements,
                                        Workers& workers) {
  return make_codec(codec.spec, layers_of(elements), workers);
}

}  // namespace longhaul
