// Payloads for tests of what lies above codecs.
#pragma once

#include <utility>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"

namespace longhaul::testing_data {

// None of its bytes: an empty update.
inline CheckedPayload checked(ByteBuffer bytes, std::size_t elements) {
  return CheckedPayload::check_update(std::move(bytes), elements).value();
}

inline CheckedPayload dense(std::vector<float> values) {
  Workers alone;
  constexpr CodecOptions kFp32{.kind = CodecKind::kDense, .values = ValueFormat::kFp32};
  ByteBuffer bytes = make_codec(kFp32, {}, alone)->take({.residual = values});
  return checked(std::move(bytes), values.size());
}

inline std::vector<float> values_of(const CheckedPayload& payload, std::size_t elements) {
  std::vector<float> values(elements);
  if (!payload.empty()) add(payload.view(), 1.0F, values);
  return values;
}

}  // namespace longhaul::testing_data
