// Bytes on the wire, written and read one by one: little-endian whatever the machine is.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/scratch.h"

namespace longhaul {

using ByteBuffer = Scratch<std::byte>;
using ByteView = std::span<const std::byte>;
// Shared: a payload is in a round, on its way to many replicas and in the journal at once.
using SharedBytes = std::shared_ptr<const ByteBuffer>;

// Unaligned little-endian access; the caller answers for sizeof(T) bytes at `at`.
template <std::unsigned_integral T>
[[nodiscard]] T load_le(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) {
    T swapped = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      swapped |= T((value >> (8 * i)) & 0xFF) << (8 * (sizeof(T) - 1 - i));
    return swapped;
  }
  return value;
}

template <std::unsigned_integral T>
void store_le(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = std::byte(value >> (8 * i));
}

// One form for one meaning: in a string of `used_bits` bits, those after the last one that counts
// are zero.
inline bool padding_is_zero(ByteView bytes, std::size_t used_bits) {
  return used_bits % 8 == 0 || (bytes.back() >> (used_bits % 8)) == std::byte{0};
}

// Appends numbers and bytes to a buffer, little-endian.
class ByteWriter {
 public:
  void u8(std::uint8_t value) { put(value); }
  void u16(std::uint16_t value) { put(value); }
  void u32(std::uint32_t value) { put(value); }
  void u64(std::uint64_t value) { put(value); }
  void f32(float value) { put(std::bit_cast<std::uint32_t>(value)); }
  void bytes(ByteView view) { buffer_.insert(buffer_.end(), view.begin(), view.end()); }

  // Appends `count` undefined bytes and returns them for filling; valid until the next append.
  std::span<std::byte> extend(std::size_t count) {
    buffer_.resize(buffer_.size() + count);
    return std::span(buffer_).last(count);
  }
  void reserve(std::size_t count) { buffer_.reserve(count); }
  [[nodiscard]] std::size_t size() const { return buffer_.size(); }
  [[nodiscard]] ByteBuffer release() && { return std::move(buffer_); }

 private:
  template <std::unsigned_integral T>
  void put(T value) {
    store_le(extend(sizeof(T)).data(), value);
  }
  ByteBuffer buffer_;
};

// Reads numbers and bytes from a buffer, little-endian.
// Reading past the end is our bug, not the peer's: callers compare with remaining() first.
class ByteReader {
 public:
  explicit ByteReader(ByteView view) : view_(view) {}

  [[nodiscard]] std::size_t remaining() const { return view_.size(); }
  std::uint8_t u8() { return take<std::uint8_t>(); }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }
  float f32() { return std::bit_cast<float>(u32()); }
  ByteView bytes(std::size_t count) {
    LONGHAUL_CHECK_LE(count, remaining());
    const ByteView head = view_.first(count);
    view_ = view_.subspan(count);
    return head;
  }

 private:
  template <std::unsigned_integral T>
  T take() {
    return load_le<T>(bytes(sizeof(T)).data());
  }
  ByteView view_;
};

}  // namespace longhaul
