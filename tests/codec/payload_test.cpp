#include "longhaul/codec/payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/codec/kernels.h"
#include "tests/codec/codec_conformance.h"
#include "tests/codec/payload_samples.h"

namespace longhaul {
namespace {

constexpr std::size_t kPayloadElements = 700;  // a convolution, a bias and a rest

Error error_of(ByteView bytes, std::uint64_t elements = kPayloadElements) {
  const Result<PayloadView> view = PayloadView::parse(bytes, elements);
  return view.ok() ? Error{ErrorCode::kIo, "accepted"} : view.error();
}

TEST(Payload, IsRefusedAtEveryTruncation) {
  for (const ByteBuffer& payload : payload_of_each_kind(kPayloadElements)) {
    for (std::size_t size = 0; size < payload.size(); ++size) {
      ASSERT_FALSE(PayloadView::parse(ByteView(payload).first(size), kPayloadElements).ok())
          << size;
    }
  }
}

// Behind a digest that fits, the body must notice by itself that something is missing.
TEST(Payload, IsRefusedAtEveryTruncationEvenWhenResealed) {
  for (const ByteBuffer& payload : payload_of_each_kind(kPayloadElements)) {
    for (std::size_t size = kPayloadHeaderBytes; size < payload.size(); ++size) {
      ByteBuffer cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
      reseal_payload(cut);
      ASSERT_FALSE(PayloadView::parse(cut, kPayloadElements).ok()) << size;
    }
  }
}

TEST(Payload, IsRefusedWithBytesAppendedEvenWhenResealed) {
  for (ByteBuffer payload : payload_of_each_kind(kPayloadElements)) {
    payload.push_back(std::byte{0});
    EXPECT_FALSE(PayloadView::parse(payload, kPayloadElements).ok());
    reseal_payload(payload);
    EXPECT_FALSE(PayloadView::parse(payload, kPayloadElements).ok());
  }
}

TEST(Payload, IsRefusedAfterEverySingleBitFlip) {
  for (ByteBuffer payload : payload_of_each_kind(300)) {
    ASSERT_TRUE(PayloadView::parse(payload, 300).ok());
    for (std::byte& byte : payload) {
      for (int bit = 0; bit < 8; ++bit) {
        byte ^= std::byte{1} << bit;
        ASSERT_FALSE(PayloadView::parse(payload, 300).ok());
        byte ^= std::byte{1} << bit;
      }
    }
  }
}

TEST(Payload, SaysWhyItIsRefused) {
  const ByteBuffer good = encoded({.kind = CodecKind::kDense}, 1.0, kPayloadElements, 1);
  const auto changed = [&](std::size_t at, unsigned value) {
    ByteBuffer bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return error_of(bytes);
  };
  using enum ErrorCode;
  EXPECT_EQ(error_of({}), (Error{kCorruptPayload, "payload: shorter than its header"}));
  EXPECT_EQ(changed(0, 0), (Error{kCorruptPayload, "payload: bad magic"}));
  EXPECT_EQ(changed(4, 2), (Error{kMismatch, "payload: wire version 2, this program reads 1"}));
  EXPECT_EQ(changed(6, 6), (Error{kCorruptPayload, "payload: unknown value format"}));
  EXPECT_EQ(changed(7, 1), (Error{kCorruptPayload, "payload: reserved byte is not zero"}));
  EXPECT_EQ(error_of(good, 701), (Error{kMismatch, "payload: 700 elements, expected 701"}));
  EXPECT_EQ(error_of(ByteView(good).first(100)), (Error{kCorruptPayload, "payload: wrong length"}));
  EXPECT_EQ(changed(50, 0xAB), (Error{kMismatch, "payload: digest does not match"}));
}

TEST(Payload, OfAnUnknownKindIsRefused) {
  for (const unsigned kind : {0U, 6U, 255U}) {
    ByteBuffer bytes = encoded({.kind = CodecKind::kDense}, 1.0, kPayloadElements, 1);
    bytes[5] = static_cast<std::byte>(kind);
    reseal_payload(bytes);
    EXPECT_EQ(error_of(bytes), (Error{ErrorCode::kCorruptPayload, "payload: unknown kind"}));
  }
}

TEST(Payload, NamesTheTileOfWhatIsNotFinite) {
  ByteBuffer bytes = encoded({.kind = CodecKind::kRandomK, .values = ValueFormat::kFp32}, 0.1,
                             kPayloadElements, 1);
  const float bad = std::numeric_limits<float>::infinity();
  std::memcpy(bytes.data() + kPayloadHeaderBytes + 12, &bad, sizeof(bad));
  reseal_payload(bytes);
  EXPECT_EQ(error_of(bytes),
            (Error{ErrorCode::kNotFinite, "payload: tile 0: value 0 is not finite"}));
}

// Corrupts some bytes behind the header and repairs the digest: refused, or finite and inside the
// update.
void expect_harmless(ByteBuffer payload, std::size_t elements, std::mt19937_64& random) {
  const std::uint64_t changes = 1 + random() % 4;
  for (std::uint64_t i = 0; i < changes && payload.size() > kPayloadHeaderBytes; ++i) {
    const std::size_t body = payload.size() - kPayloadHeaderBytes;
    const std::size_t near_start = std::min<std::size_t>(body, 24);  // where lengths and counts lie
    const std::size_t at = random() % (random() % 2 == 0 ? body : near_start);
    payload[kPayloadHeaderBytes + at] = static_cast<std::byte>(random());
  }
  if (random() % 8 == 0) payload[5] = static_cast<std::byte>(1 + random() % 5);
  if (random() % 8 == 0) payload[6] = static_cast<std::byte>(random() % 6);
  reseal_payload(payload);
  const Result<PayloadView> view = PayloadView::parse(payload, elements);
  if (!view.ok()) return;
  std::vector<float> decoded(elements, 0.0F);
  add(*view, 1.0F, decoded);
  ASSERT_EQ(kernels::first_non_finite(decoded), elements);
}

TEST(Payload, CorruptedBehindItsDigestIsRefusedOrFinite) {
  std::mt19937_64 random(5);
  for (const std::size_t elements : {300U, 700U}) {
    for (const ByteBuffer& payload : payload_of_each_kind(elements)) {
      for (int i = 0; i < 200; ++i) expect_harmless(payload, elements, random);
    }
  }
}

TEST(Payload, OfTwoTilesCorruptedBehindItsDigestIsRefusedOrFinite) {
  std::mt19937_64 random(6);
  for (const CodecKind kind : {CodecKind::kThreshold, CodecKind::kRandomK, CodecKind::kCocktail}) {
    const ByteBuffer payload = encoded(
        {.kind = kind, .values = ValueFormat::k4Bit, .threshold = 0.033F}, 0.001, 70'000, 1);
    for (int i = 0; i < 60; ++i) expect_harmless(payload, 70'000, random);
  }
}

TEST(Payload, WithFactorsWhoseProductIsNotFiniteIsRefused) {
  ByteWriter body;
  for (const std::uint32_t word : {1U, 2U, 2U, 1U}) body.u32(word);  // one block of 2 x 2, rank 1
  for (const float factor : {1e30F, 1.0F, 1e30F, 1.0F}) body.f32(factor);
  const ByteBuffer bytes = std::move(body).release();
  const ByteBuffer payload =
      seal_payload({.kind = PayloadKind::kLowRank, .elements = 4}, {&bytes, 1});
  EXPECT_EQ(error_of(payload, 4),
            (Error{ErrorCode::kNotFinite,
                   "payload: low rank: the product of the factors is not finite"}));
}

TEST(Payload, ThatClaimsMoreThanItsBytesIsRefusedBeforeRoomIsMade) {
  constexpr std::uint64_t kAbsurd = std::uint64_t{1} << 60;
  for (unsigned kind = 1; kind <= 5; ++kind) {
    for (unsigned format = 0; format < 6; ++format) {
      const ByteBuffer body(64, std::byte{1});
      const ByteBuffer payload = seal_payload({.kind = static_cast<PayloadKind>(kind),
                                               .format = static_cast<ValueFormat>(format),
                                               .elements = kAbsurd},
                                              {&body, 1});
      EXPECT_FALSE(PayloadView::parse(payload, kAbsurd).ok());
    }
  }
}

TEST(Payload, TellsWhatItHolds) {
  const ByteBuffer sparse =
      encoded({.kind = CodecKind::kThreshold, .values = ValueFormat::kBf16, .threshold = 0.02F},
              1.0, kPayloadElements, 1);
  const PayloadView view = PayloadView::parse(sparse, kPayloadElements).value();
  EXPECT_EQ(view.elements(), kPayloadElements);
  EXPECT_EQ(view.size_bytes(), sparse.size());
  EXPECT_EQ(view.header().kind, PayloadKind::kSparse);
  EXPECT_FALSE(view.is_dense());
  TileEntries entries;
  view.entries_of(0, entries);
  EXPECT_EQ(entries.positions.size(), view.values());
}

TEST(Payload, OfDenseKindsDoesNotNameItsElements) {
  const ByteBuffer dense = encoded({.kind = CodecKind::kDense}, 1.0, kPayloadElements, 1);
  const PayloadView view = PayloadView::parse(dense, kPayloadElements).value();
  EXPECT_TRUE(view.is_dense());
  TileEntries entries;
  EXPECT_THROW(view.entries_of(0, entries), std::logic_error);
}

TEST(Payload, AddsItselfWithAWeight) {
  for (const ByteBuffer& payload : payload_of_each_kind(kPayloadElements)) {
    const std::vector<float> once = decode(payload, kPayloadElements);
    std::vector<float> sum(kPayloadElements, 1.0F);
    add(PayloadView::parse(payload, kPayloadElements).value(), -0.5F, sum);
    for (std::size_t i = 0; i < kPayloadElements; ++i) ASSERT_EQ(sum[i], 1.0F + -0.5F * once[i]);
  }
}

TEST(Payload, WantsAnOutputOfItsOwnLength) {
  const ByteBuffer payload = encoded({.kind = CodecKind::kDense}, 1.0, kPayloadElements, 1);
  std::vector<float> sum(kPayloadElements + 1);
  EXPECT_THROW(add(PayloadView::parse(payload, kPayloadElements).value(), 1.0F, sum),
               std::logic_error);
}

TEST(CheckedPayload, RefusesWhatAViewRefuses) {
  for (ByteBuffer payload : payload_of_each_kind(kPayloadElements)) {
    EXPECT_TRUE(CheckedPayload::check(payload, kPayloadElements).ok());
    EXPECT_FALSE(CheckedPayload::check(payload, kPayloadElements + 1).ok());
    payload.back() ^= std::byte{1};
    EXPECT_FALSE(CheckedPayload::check(payload, kPayloadElements).ok());
  }
  EXPECT_FALSE(CheckedPayload::check({}, kPayloadElements).ok());
  EXPECT_TRUE(CheckedPayload::check_update({}, kPayloadElements)->empty());
}

TEST(CheckedPayload, WhatWasSealedHereNeedsNoHashToBeTheSame) {
  for (const ByteBuffer& payload : payload_of_each_kind(kPayloadElements)) {
    const CheckedPayload checked = CheckedPayload::check(payload, kPayloadElements).value();
    const CheckedPayload sealed = CheckedPayload::of_sealed(payload, kPayloadElements);
    EXPECT_EQ(sealed.digest(), checked.digest());
    EXPECT_NE(sealed.digest(), 0U);
    EXPECT_EQ(*sealed.bytes(), payload);
    EXPECT_EQ(sealed.view().values(), checked.view().values());
    std::vector<float> a(kPayloadElements);
    std::vector<float> b(kPayloadElements);
    add(checked.view(), 1.0F, a);
    add(sealed.view(), 1.0F, b);
    EXPECT_EQ(a, b);
  }
  EXPECT_TRUE(CheckedPayload::of_sealed({}, kPayloadElements).empty());
}

TEST(CheckedPayload, WhatWasSealedHereHasTheSameEntriesInEveryTile) {
  constexpr std::size_t kElements = 3 * kTileElements + 5;
  std::vector<float> update(kElements);
  for (std::size_t i = 0; i < kElements; i += 97) {
    if (i / kTileElements != 1) update[i] = 1.0F + static_cast<float>(i % 13);  // one tile is empty
  }
  Workers workers(1);
  for (const std::string_view codec : {"top_k/bf16", "cocktail"}) {
    std::vector<float> residual = update;
    const ByteBuffer payload = make_codec(parse_codec(codec).value(), {}, workers)
                                   ->take({.residual = residual, .keep_ratio = 0.005});
    const CheckedPayload checked = CheckedPayload::check(payload, kElements).value();
    const CheckedPayload sealed = CheckedPayload::of_sealed(payload, kElements);
    TileEntries a;
    TileEntries b;
    for (std::size_t tile = 0; tile < tile_count(kElements); ++tile) {
      checked.view().entries_of(tile, a);
      sealed.view().entries_of(tile, b);
      EXPECT_EQ(a.positions, b.positions) << codec << " tile " << tile;
      EXPECT_EQ(a.values, b.values) << codec << " tile " << tile;
    }
  }
}

TEST(CheckedPayload, CopiesShareTheirBytes) {
  const CheckedPayload one =
      CheckedPayload::of_sealed(payload_of_each_kind(kPayloadElements).front(), kPayloadElements);
  const CheckedPayload other = one;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(one.bytes(), other.bytes());
}

TEST(ResealPayload, NeedsAHeader) {
  ByteBuffer bytes(kPayloadHeaderBytes - 1);
  EXPECT_THROW(reseal_payload(bytes), std::logic_error);
}

}  // namespace
}  // namespace longhaul
