// An encoded update: bytes that say what they are, and the checked view of them that can be summed.
// docs/wire_format.md describes them byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "longhaul/codec/payload_body.h"
#include "longhaul/codec/tile.h"
#include "longhaul/codec/value_format.h"

namespace longhaul {

inline constexpr std::uint8_t kWireVersion = 1;
inline constexpr std::size_t kPayloadHeaderBytes = 32;

struct PayloadHeader {
  PayloadKind kind = PayloadKind::kDense;
  ValueFormat format = ValueFormat::kFp32;
  std::uint64_t elements = 0;
};

// How many elements a payload claims to have; 0 if it has no header. Not to be believed.
std::uint64_t claimed_elements(ByteView bytes);

// Header, digest and the parts of the body in order.
ByteBuffer seal_payload(const PayloadHeader& header, std::span<const ByteBuffer> body_parts);

// The same in place: `bytes` has room for the header, and the body behind it.
void seal_payload(const PayloadHeader& header, std::span<std::byte> bytes);

// Repairs magic, length and digest of a header followed by any body: for fuzzing what lies behind
// them.
void reseal_payload(std::span<std::byte> bytes);

// A payload whose every byte was checked: what it decodes to is finite and inside the update. It
// refers to the bytes it was parsed from, which must outlive it.
class PayloadView {
 public:
  // Refuses anything but exactly one well-formed payload of `elements` elements. The size of its
  // allocations depends on `elements`, which the caller knows, and never on what the bytes claim.
  static Result<PayloadView> parse(ByteView bytes, std::uint64_t elements);
  // A view of bytes that this process has just sealed. Skips the digest and the check for finite
  // values; debug builds check everything.
  static PayloadView of_sealed(ByteView bytes, std::uint64_t elements);

  [[nodiscard]] const PayloadHeader& header() const { return header_; }
  [[nodiscard]] std::size_t elements() const { return static_cast<std::size_t>(header_.elements); }
  [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
  // Values on the wire: kept elements, or the entries of the factors.
  [[nodiscard]] std::size_t values() const;

  // Its factors, if it has some.
  [[nodiscard]] const LowRankBody* low_rank() const { return std::get_if<LowRankBody>(&body_); }

  // Is every element of the update present, as far as this form can tell?
  [[nodiscard]] bool is_dense() const;

  // The elements present in one tile. Not for payloads that are dense.
  void entries_of(std::size_t tile, TileEntries& entries) const;

  // out[i] += weight · (element i of the tile); `scratch` saves allocations from call to call.
  void add_tile(std::size_t tile, float weight, std::span<float> out, TileEntries& scratch) const;

 private:
  PayloadView(const PayloadHeader& header, std::size_t size_bytes, PayloadBody body)
      : header_(header), size_bytes_(size_bytes), body_(std::move(body)) {}

  PayloadHeader header_;
  std::size_t size_bytes_;
  PayloadBody body_;
};

// A payload whose bytes were checked once, and those bytes: whoever has one need not check again.
// Copies are cheap, they share both.
class CheckedPayload {
 public:
  CheckedPayload() = default;  // empty: an update without elements
  // Bytes from outside. Refuses as PayloadView::parse() does.
  static Result<CheckedPayload> check(ByteBuffer bytes, std::uint64_t elements);
  // The same for an update, which may have no bytes.
  static Result<CheckedPayload> check_update(ByteBuffer bytes, std::uint64_t elements);
  // Takes bytes that this process has just sealed, as PayloadView::of_sealed(). No bytes: empty.
  static CheckedPayload of_sealed(ByteBuffer bytes, std::uint64_t elements);

  [[nodiscard]] bool empty() const { return content_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return empty() ? 0 : content_->bytes.size(); }
  [[nodiscard]] SharedBytes bytes() const;  // never null
  // The one in the header, which tells payloads apart; 0 if empty.
  [[nodiscard]] std::uint64_t digest() const;
  // Precondition: not empty.
  [[nodiscard]] const PayloadView& view() const;

 private:
  struct Content {
    ByteBuffer bytes;
    PayloadView view;
  };
  explicit CheckedPayload(Content content)
      : content_(std::make_shared<const Content>(std::move(content))) {}

  std::shared_ptr<const Content> content_;
};

// A payload in a sum, and its factor. A sum is always formed in the order of its payloads.
struct WeightedPayload {
  CheckedPayload payload;
  float weight = 1.0F;
};

// out += weight · payload, over all elements.
void add(const PayloadView& payload, float weight, std::span<float> out);

}  // namespace longhaul
