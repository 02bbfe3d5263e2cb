// An encoded update: bytes that say what they are, and the checked view of them that can be summed.
// docs/wire_format.md describes them byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "longhaul/codec/position_coding.h"
#include "longhaul/codec/random_subset.h"
#include "longhaul/codec/tile.h"
#include "longhaul/codec/value_format.h"

namespace longhaul {

inline constexpr std::uint8_t kWireVersion = 1;
inline constexpr std::size_t kPayloadHeaderBytes = 32;

// The form of a payload's body.
enum class PayloadKind : std::uint8_t {
  kDense = 1,         // every element
  kSparse = 2,        // positions and values
  kRandom = 3,        // a seed, and the values of the subset it stands for
  kRandomSparse = 4,  // a seed, and positions and values inside that subset
  kLowRank = 5,       // factors per matrix
};

// The first bytes of every payload.
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

// Consecutive elements of an update as a matrix: left · rightᵀ (rank > 0), or its values (rank =
// 0).
struct FactoredMatrix {
  std::size_t begin = 0;  // its first element
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t rank = 0;
  std::size_t left =
      0;  // where its left factor begins among the floats it belongs to, or its values
  std::size_t right = 0;  // where its right factor begins

  [[nodiscard]] std::size_t count() const { return std::size_t{rows} * columns; }
  // Floats that stand for it.
  [[nodiscard]] std::size_t values() const {
    return rank == 0 ? count() : (std::size_t{rows} + columns) * rank;
  }
};

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
  [[nodiscard]] std::size_t values() const { return values_; }

  // Its matrices, which cover the update, and their factors one after the other. Empty for payloads
  // of other kinds.
  [[nodiscard]] std::span<const FactoredMatrix> matrices() const { return matrices_; }
  [[nodiscard]] std::span<const float> factors() const { return factors_; }

  // Is every element of the update present, as far as this form can tell?
  [[nodiscard]] bool is_dense() const {
    return header_.kind == PayloadKind::kDense || header_.kind == PayloadKind::kLowRank;
  }

  // The elements present in one tile. Not for payloads that are dense.
  void entries_of(std::size_t tile, TileEntries& entries) const;

  // out[i] += weight · (element i of the tile); `scratch` saves allocations from call to call.
  void add_tile(std::size_t tile, float weight, std::span<float> out, TileEntries& scratch) const;

 private:
  PayloadView(const PayloadHeader& header, std::size_t size_bytes, bool is_sealed_here)
      : header_(header), size_bytes_(size_bytes), is_sealed_here_(is_sealed_here) {}

  // The body is read and checked once; afterwards its tiles decode without a way to fail.
  Status read_body(ByteView body);
  Status read_dense(ByteView body);
  Status read_tiles(ByteReader& in);
  Status read_random(ByteReader& in);
  Status read_low_rank(ByteReader& in);
  [[nodiscard]] Status check_finite_values(ByteView in, std::size_t count) const;
  void keep_positions();

  void add_dense_tile(std::size_t tile, float weight, std::span<float> out,
                      TileEntries& scratch) const;
  void add_low_rank_tile(std::size_t tile, float weight, std::span<float> out,
                         TileEntries& scratch) const;
  // The same for elements of one matrix, counted from `first` in it.
  void add_matrix_part(const FactoredMatrix& matrix, std::size_t first, float weight,
                       std::span<float> out, TileEntries& scratch) const;

  PayloadHeader header_;
  std::size_t size_bytes_;
  bool is_sealed_here_;  // so values are finite
  std::size_t values_ = 0;
  RandomSubset subset_;           // kRandom, kRandomSparse
  ByteView value_bytes_;          // kDense, kRandom
  std::vector<CodedTile> tiles_;  // kSparse; kRandomSparse: positions count inside the subset
  // Decoded, of all tiles one after the other, if the payload was sealed here: whoever has sent it
  // reads it again in every step until its mean comes.
  std::vector<std::uint16_t> positions_;
  std::vector<FactoredMatrix> matrices_;  // this and the next: kLowRank
  std::vector<float> factors_;
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

  [[nodiscard]] bool empty() const { return bytes_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return empty() ? 0 : bytes_->size(); }
  [[nodiscard]] SharedBytes bytes() const;  // never null
  // The one in the header, which tells payloads apart; 0 if empty.
  [[nodiscard]] std::uint64_t digest() const;
  // Precondition: not empty.
  [[nodiscard]] const PayloadView& view() const;

 private:
  CheckedPayload(ByteBuffer bytes, PayloadView view)
      : bytes_(std::make_shared<const ByteBuffer>(std::move(bytes))),
        view_(std::make_shared<const PayloadView>(std::move(view))) {}

  SharedBytes bytes_;  // null: empty
  std::shared_ptr<const PayloadView> view_;
};

// A payload in a sum, and its factor. A sum is always formed in the order of its payloads.
struct WeightedPayload {
  CheckedPayload payload;
  float weight = 1.0F;
};

// out += weight · payload, over all elements.
void add(const PayloadView& payload, float weight, std::span<float> out);

}  // namespace longhaul
