#include "tests/fuzz/body_fuzz.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/codec/kernels.h"

namespace longhaul::fuzz {
namespace {

// Around the borders of blocks (512), pieces (4096) and tiles (65536).
constexpr std::array<std::uint64_t, 8> kElementCounts{0,    1,     7,     513,
                                                      4097, 65536, 65537, kMaxElements};
constexpr std::uint8_t kFormatChoices = 7;
constexpr std::uint8_t kFitted = 0x80;

// Buffers that live from run to run: clearing 200,000 floats each time would be most of the work.
// What decoders read and fill in between is made anew, so that a step beyond its end is seen.
struct Room {
  std::vector<float> sum = std::vector<float>(kMaxElements);    // all zeros between runs
  std::vector<float> again = std::vector<float>(kMaxElements);  // the same
};

Room& room() {
  static Room the_room;
  return the_room;
}

// As its sender holds a payload, which checks nothing: it must be what a receiver has checked.
CheckedPayload sealed_again(ByteView payload, std::size_t elements) {
  const ByteBuffer bytes(payload.begin(), payload.end());
  const Result<CheckedPayload> checked = CheckedPayload::check_update(bytes, elements);
  LONGHAUL_CHECK(checked.ok());
  LONGHAUL_CHECK_EQ(claimed_elements(bytes), elements);
  CheckedPayload sealed = CheckedPayload::of_sealed(bytes, elements);
  LONGHAUL_CHECK_EQ(checked->digest(), sealed.digest());
  return sealed;
}

// Claims about many elements are gathered without branches: the fuzzer traces every comparison that
// decides one.
void check_entries(const TileEntries& entries, std::size_t tile_elements) {
  const auto& positions = entries.positions;
  LONGHAUL_CHECK_EQ(positions.size(), entries.values.size());
  LONGHAUL_CHECK_EQ(kernels::first_non_finite(entries.values), entries.values.size());
  if (positions.empty()) return;
  LONGHAUL_CHECK_LT(positions.back(), tile_elements);
  std::uint32_t smallest_step = 1;
  const std::uint16_t* const at = positions.data();
  for (std::size_t i = 1; i < positions.size(); ++i) {
    smallest_step =
        std::min(smallest_step, static_cast<std::uint32_t>(std::max(0, at[i] - at[i - 1])));
  }
  LONGHAUL_CHECK_EQ(smallest_step, 1U);  // ascending
}

// Is `sum` at the positions of `entries` what they say? Sets it to zero there.
bool take_back(const TileEntries& entries, std::span<float> sum) {
  std::uint32_t difference = 0;
  const std::uint16_t* const at = entries.positions.data();
  const float* const values = entries.values.data();
  for (std::size_t i = 0; i < entries.positions.size(); ++i) {
    float& place = sum.data()[at[i]];
    // 0 + v is v to the bit, except that it makes -0 a 0.
    difference |=
        std::bit_cast<std::uint32_t>(place) ^ std::bit_cast<std::uint32_t>(0.0F + values[i]);
    place = 0.0F;
  }
  return difference == 0;
}

constexpr std::size_t kSmall = 5000;  // elements that may be looked at one by one in every run

void check_named_elements(const PayloadView& first, const PayloadView& second) {
  const std::span sum = std::span(room().sum).first(first.elements());
  TileEntries entries;
  add(second, 1.0F, sum);
  std::size_t named = 0;
  for (std::size_t tile = 0; tile < tile_count(sum.size()); ++tile) {
    const std::span part = sum.subspan(tile_begin(tile), tile_size(tile, sum.size()));
    first.entries_of(tile, entries);
    check_entries(entries, part.size());
    named += entries.positions.size();
    LONGHAUL_CHECK(take_back(entries, part));
  }
  LONGHAUL_CHECK_EQ(named, first.values());
  // Nothing else was touched.
  if (sum.size() < kSmall) LONGHAUL_CHECK_EQ(kernels::largest_magnitude(sum), 0.0F);
}

// Of a large update only the last tile: the others differ from it by their offset alone.
void check_all_elements(const PayloadView& first, const PayloadView& second) {
  TileEntries scratch;
  const std::size_t tiles = tile_count(first.elements());
  for (std::size_t tile = first.elements() < kSmall ? 0 : tiles - 1; tile < tiles; ++tile) {
    const std::size_t size = tile_size(tile, first.elements());
    const std::span sum = std::span(room().sum).first(size);
    const std::span again = std::span(room().again).first(size);
    first.add_tile(tile, 1.0F, sum, scratch);
    second.add_tile(tile, 1.0F, again, scratch);
    LONGHAUL_CHECK_EQ(kernels::first_non_finite(sum), size);
    LONGHAUL_CHECK_EQ(std::memcmp(sum.data(), again.data(), sum.size_bytes()), 0);
    std::memset(sum.data(), 0, sum.size_bytes());
    std::memset(again.data(), 0, again.size_bytes());
  }
}

}  // namespace

BodyInput split_input(PayloadKind kind, std::span<const std::uint8_t> input) {
  const std::uint8_t format = input.size() > 0 ? input[0] : std::uint8_t{0};
  const std::uint8_t count = input.size() > 1 ? input[1] : std::uint8_t{0};
  return {.header = {.kind = kind,
                     .format = ValueFormat{static_cast<std::uint8_t>(format % kFormatChoices)},
                     .elements = kElementCounts[count % kElementCounts.size()]},
          .is_fitted = (count & kFitted) != 0,
          .body = std::as_bytes(input.subspan(std::min<std::size_t>(input.size(), 2)))};
}

ByteBuffer input_prefix(const PayloadHeader& header) {
  const auto* const count = std::ranges::find(kElementCounts, header.elements);
  LONGHAUL_CHECK(count != kElementCounts.end());
  return {static_cast<std::byte>(header.format),
          static_cast<std::byte>(count - kElementCounts.begin())};
}

ByteBuffer sealed(const BodyInput& input, std::size_t head_bytes, std::size_t body_bytes) {
  ByteBuffer payload(kPayloadHeaderBytes + body_bytes);
  std::memset(payload.data(), 0, payload.size());
  payload[4] = std::byte{kWireVersion};
  payload[5] = static_cast<std::byte>(input.header.kind);
  payload[6] = static_cast<std::byte>(input.header.format);
  store_le(payload.data() + 8, input.header.elements);
  const std::span body = std::span(payload).subspan(kPayloadHeaderBytes);
  std::size_t filled = std::min(input.body.size(), body.size());
  if (filled > 0) std::memcpy(body.data(), input.body.data(), filled);
  // What is filled behind the head is copied behind itself, twice as much each time.
  while (filled > head_bytes && filled < body.size()) {
    const std::size_t here = std::min(filled - head_bytes, body.size() - filled);
    std::memcpy(body.data() + filled, body.data() + head_bytes, here);
    filled += here;
  }
  reseal_payload(payload);
  return payload;
}

void check_decoder(ByteView payload, std::size_t elements) {
  const Result<PayloadView> view = PayloadView::parse(payload, elements);
  if (!view.ok()) {
    LONGHAUL_CHECK(!view.error().message.empty());
    return;
  }
  LONGHAUL_CHECK_EQ(view->elements(), elements);
  LONGHAUL_CHECK_EQ(view->size_bytes(), payload.size());
  LONGHAUL_CHECK_LE(view->values(), 8 * payload.size());  // no format packs more into a byte
  const CheckedPayload sealed = sealed_again(payload, elements);
  const PayloadView& second = sealed.view();
  LONGHAUL_CHECK_EQ(view->values(), second.values());
  if (view->is_dense()) return check_all_elements(*view, second);
  check_named_elements(*view, second);
}

}  // namespace longhaul::fuzz
