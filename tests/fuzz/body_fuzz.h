// What the fuzz programs of the decoders share: input of the fuzzer becomes a payload with correct
// magic, length and digest, and a payload that is accepted must keep every promise of payload.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "longhaul/base/bytes.h"
#include "longhaul/codec/payload.h"

namespace longhaul::fuzz {

inline constexpr std::size_t kMaxElements = 200000;

// Input: a byte for the value format (one in seven is unknown), a byte for the element count, then
// the body.
struct BodyInput {
  PayloadHeader header;
  bool is_fitted = false;  // top bit of the second byte: repeat or cut the body to the length that
                           // its head asks for
  ByteView body;
};
BodyInput split_input(PayloadKind kind, std::span<const std::uint8_t> input);

// The two bytes that split_input() reads `header` from; its element count is one of the choices.
ByteBuffer input_prefix(const PayloadHeader& header);

// The header and the body, cut to `body_bytes` or, without its first `head_bytes`, repeated.
ByteBuffer sealed(const BodyInput& input, std::size_t head_bytes, std::size_t body_bytes);
inline ByteBuffer sealed(const BodyInput& input) { return sealed(input, 0, input.body.size()); }

// Parses, and holds what is accepted to its promises: throws std::logic_error where one is broken.
void check_decoder(ByteView payload, std::size_t elements);

}  // namespace longhaul::fuzz
