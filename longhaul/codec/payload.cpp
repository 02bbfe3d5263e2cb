#include "longhaul/codec/payload.h"

#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

namespace longhaul {
namespace {

constexpr std::uint32_t kMagic =
    0x50554C48;  // "HLUP" as bytes in the order of the wire: 48 4C 55 50
constexpr std::size_t kKindOffset = 5;
constexpr std::size_t kElementsOffset = 8;
constexpr std::size_t kDigestOffset = 24;

std::uint64_t payload_digest(ByteView bytes) {
  const std::uint64_t seed = XXH3_64bits(bytes.data(), kDigestOffset);
  const ByteView body = bytes.subspan(kPayloadHeaderBytes);
  return XXH3_64bits_withSeed(body.data(), body.size(), seed);
}

void write_header(const PayloadHeader& header, std::size_t body_bytes, std::span<std::byte> out) {
  store_le(out.data(), kMagic);
  out[4] = std::byte{kWireVersion};
  out[5] = static_cast<std::byte>(header.kind);
  out[6] = static_cast<std::byte>(header.format);
  out[7] = std::byte{0};
  store_le(out.data() + 8, header.elements);
  store_le(out.data() + 16, std::uint64_t{body_bytes});
}

Error refuse(ErrorCode code, std::string what) {
  return Error{code, "payload: " + std::move(what)};
}

Result<PayloadHeader> read_header(ByteView bytes, std::uint64_t elements) {
  if (bytes.size() < kPayloadHeaderBytes)
    return refuse(ErrorCode::kCorruptPayload, "shorter than its header");
  ByteReader in(bytes);
  if (in.u32() != kMagic) return refuse(ErrorCode::kCorruptPayload, "bad magic");
  if (const auto version = in.u8(); version != kWireVersion) {
    return refuse(ErrorCode::kMismatch, "wire version " + std::to_string(version) +
                                            ", this program reads " + std::to_string(kWireVersion));
  }
  const std::uint8_t kind = in.u8();
  const std::uint8_t format = in.u8();
  if (!is_value_format(format)) return refuse(ErrorCode::kCorruptPayload, "unknown value format");
  if (in.u8() != 0) return refuse(ErrorCode::kCorruptPayload, "reserved byte is not zero");
  const PayloadHeader header{
      .kind = PayloadKind{kind}, .format = ValueFormat{format}, .elements = in.u64()};
  if (header.elements != elements) {
    return refuse(ErrorCode::kMismatch, std::to_string(header.elements) + " elements, expected " +
                                            std::to_string(elements));
  }
  if (in.u64() != bytes.size() - kPayloadHeaderBytes)
    return refuse(ErrorCode::kCorruptPayload, "wrong length");
  if (in.u64() != payload_digest(bytes))
    return refuse(ErrorCode::kMismatch, "digest does not match");
  return header;
}

}  // namespace

std::uint64_t claimed_elements(ByteView bytes) {
  if (bytes.size() < kPayloadHeaderBytes) return 0;
  return load_le<std::uint64_t>(bytes.data() + kElementsOffset);
}

ByteBuffer seal_payload(const PayloadHeader& header, std::span<const ByteBuffer> body_parts) {
  std::size_t body_bytes = 0;
  for (const ByteBuffer& part : body_parts) body_bytes += part.size();
  ByteBuffer bytes;
  bytes.reserve(kPayloadHeaderBytes + body_bytes);
  bytes.resize(kPayloadHeaderBytes);
  for (const ByteBuffer& part : body_parts) bytes.insert(bytes.end(), part.begin(), part.end());
  seal_payload(header, bytes);
  return bytes;
}

void seal_payload(const PayloadHeader& header, std::span<std::byte> bytes) {
  LONGHAUL_CHECK_GE(bytes.size(), kPayloadHeaderBytes);
  write_header(header, bytes.size() - kPayloadHeaderBytes, bytes);
  store_le(bytes.data() + kDigestOffset, payload_digest(bytes));
}

void reseal_payload(std::span<std::byte> bytes) {
  LONGHAUL_CHECK_GE(bytes.size(), kPayloadHeaderBytes);
  store_le(bytes.data(), kMagic);
  store_le(bytes.data() + 16, std::uint64_t{bytes.size() - kPayloadHeaderBytes});
  store_le(bytes.data() + kDigestOffset, payload_digest(bytes));
}

Result<PayloadView> PayloadView::parse(ByteView bytes, std::uint64_t elements) {
  const PayloadHeader header = LONGHAUL_TRY(read_header(bytes, elements));
  PayloadView view(header, bytes.size(), false);
  Status read = view.read_body(bytes.subspan(kPayloadHeaderBytes));
  if (!read.ok()) return std::move(read).error().within("payload");
  return view;
}

PayloadView PayloadView::of_sealed(ByteView bytes, std::uint64_t elements) {
  assert(parse(bytes, elements).ok());
  LONGHAUL_CHECK_GE(bytes.size(), kPayloadHeaderBytes);
  const PayloadHeader header{
      .kind = PayloadKind{static_cast<std::uint8_t>(bytes[kKindOffset])},
      .format = ValueFormat{static_cast<std::uint8_t>(bytes[kKindOffset + 1])},
      .elements = elements};
  PayloadView view(header, bytes.size(), true);
  LONGHAUL_CHECK(view.read_body(bytes.subspan(kPayloadHeaderBytes)).ok());
  return view;
}

Result<CheckedPayload> CheckedPayload::check(ByteBuffer bytes, std::uint64_t elements) {
  PayloadView view = LONGHAUL_TRY(PayloadView::parse(bytes, elements));
  return CheckedPayload(std::move(bytes), std::move(view));
}

Result<CheckedPayload> CheckedPayload::check_update(ByteBuffer bytes, std::uint64_t elements) {
  if (bytes.empty()) return CheckedPayload();
  return check(std::move(bytes), elements);
}

CheckedPayload CheckedPayload::of_sealed(ByteBuffer bytes, std::uint64_t elements) {
  if (bytes.empty()) return {};
  PayloadView view = PayloadView::of_sealed(bytes, elements);
  return CheckedPayload(std::move(bytes), std::move(view));
}

SharedBytes CheckedPayload::bytes() const {
  if (empty()) return std::make_shared<const ByteBuffer>();
  return bytes_;
}

std::uint64_t CheckedPayload::digest() const {
  return empty() ? 0 : load_le<std::uint64_t>(bytes_->data() + kDigestOffset);
}

const PayloadView& CheckedPayload::view() const {
  LONGHAUL_CHECK(!empty());
  return *view_;
}

void add(const PayloadView& payload, float weight, std::span<float> out) {
  LONGHAUL_CHECK_EQ(out.size(), payload.elements());
  TileEntries scratch;
  for (std::size_t tile = 0; tile < tile_count(out.size()); ++tile) {
    payload.add_tile(tile, weight, out.subspan(tile_begin(tile), tile_size(tile, out.size())),
                     scratch);
  }
}

}  // namespace longhaul
