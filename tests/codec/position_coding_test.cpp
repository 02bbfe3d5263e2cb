#include "longhaul/codec/position_coding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "longhaul/base/scratch.h"
#include "longhaul/codec/tile.h"

namespace longhaul {
namespace {

using Positions = Scratch<std::uint16_t>;

ByteBuffer written(const Positions& positions) {
  ByteWriter out;
  write_positions(positions, out);
  return std::move(out).release();
}

// Positions as a decoder gives them; an error becomes a test failure.
Positions read_back(ByteView bytes, std::size_t tile_elements) {
  ByteReader in(bytes);
  const Result<CodedTile> coded = read_positions(in, tile_elements);
  EXPECT_TRUE(coded.ok()) << (coded.ok() ? "" : coded.error().message);
  if (!coded.ok()) return {};
  EXPECT_EQ(in.remaining(), 0U);
  Positions positions;
  decode_positions(*coded, positions);
  return positions;
}

Positions random_positions(double density, std::size_t tile_elements, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const double limit = density * 0x1p64;
  Positions positions;
  for (std::size_t i = 0; i < tile_elements; ++i) {
    if (static_cast<double>(random()) < limit) positions.push_back(static_cast<std::uint16_t>(i));
  }
  return positions;
}

double bits_per_position(double density) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Positions positions = random_positions(density, kTileElements, seed);
    bytes += written(positions).size();
    count += positions.size();
  }
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(count);
}

TEST(PositionCoding, ReadsBackWhatItWrote) {
  for (const std::size_t tile :
       {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{1000}, kTileElements}) {
    for (const double density :
         {0.0, 0.0001, 0.001, 0.01, 1.0 / 64, 0.1, 0.3, 0.5, 0.9, 0.999, 1.1}) {
      SCOPED_TRACE(std::to_string(tile) + " at " + std::to_string(density));
      const Positions positions = random_positions(density, tile, tile);
      EXPECT_EQ(read_back(written(positions), tile), positions);
    }
  }
}

TEST(PositionCoding, ReadsBackPatternsThatAreFarFromRandom) {
  std::vector<Positions> patterns{{}, {0}, {65535}, {0, 65535}, {65534, 65535}, {32767}};
  for (const std::size_t stride : {2U, 3U, 64U, 4096U, 65535U}) {
    patterns.emplace_back();
    for (std::size_t i = stride - 1; i < kTileElements; i += stride)
      patterns.back().push_back(static_cast<std::uint16_t>(i));
  }
  patterns.emplace_back();  // two clusters far apart
  for (std::size_t i = 0; i < 3000; ++i)
    patterns.back().push_back(static_cast<std::uint16_t>(i < 1500 ? i : 62'000 + i));
  for (const Positions& positions : patterns)
    EXPECT_EQ(read_back(written(positions), kTileElements), positions);
}

TEST(PositionCoding, TakesTheBytesThatItsFormulaPromises) {
  for (const double density : {0.0005, 0.001, 0.01, 1.0 / 64, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.1}) {
    SCOPED_TRACE(density);
    const Positions positions = random_positions(density, kTileElements, 17);
    const auto count = static_cast<double>(positions.size());
    const double real_density = count / static_cast<double>(kTileElements);
    const auto bytes = static_cast<double>(written(positions).size());
    // The draws differ from their mean by about the root of their number, a bit or so each.
    const double luck = 3.0 * std::sqrt(count) / 8.0;
    EXPECT_NEAR(bytes, count * expected_position_bits(real_density) / 8.0,
                0.01 * bytes + 9.0 + luck);
  }
}

TEST(PositionCoding, ComesNearTheEntropy) {
  EXPECT_LE(bits_per_position(1.0 / 64), 7.6);
  EXPECT_LE(bits_per_position(0.01), 8.2);
}

TEST(PositionCoding, NeedsHardlyMoreThanOneBitEachForAFullTile) {
  Positions all(kTileElements);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  EXPECT_LE(written(all).size(), kTileElements / 8 + 8);
}

TEST(PositionCoding, RefusesEveryTruncation) {
  for (const double density : {0.002, 0.05, 0.7}) {
    const ByteBuffer bytes = written(random_positions(density, 2000, 3));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ByteReader in(ByteView(bytes).first(size));
      EXPECT_FALSE(read_positions(in, 2000).ok()) << size;
    }
  }
}

// Whatever is accepted must decode to ascending positions inside the tile.
void expect_harmless(ByteView bytes, std::size_t tile_elements) {
  ByteReader in(bytes);
  const Result<CodedTile> coded = read_positions(in, tile_elements);
  if (!coded.ok()) return;
  Positions positions;
  decode_positions(*coded, positions);
  EXPECT_TRUE(std::ranges::is_sorted(positions, std::less_equal<>()) || positions.size() < 2);
  if (!positions.empty()) {
    EXPECT_LT(positions.back(), tile_elements);
  }
}

TEST(PositionCoding, RefusesOrSurvivesEveryCorruptedByte) {
  for (const double density : {0.01, 0.2}) {
    ByteBuffer bytes = written(random_positions(density, 300, 5));
    for (std::byte& byte : bytes) {
      const std::byte before = byte;
      for (unsigned value = 0; value < 256; ++value) {
        byte = static_cast<std::byte>(value);
        expect_harmless(bytes, 300);
      }
      byte = before;
    }
  }
}

TEST(PositionCoding, RefusesOrSurvivesRandomBytes) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    ByteBuffer bytes(random() % 24);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() > 2)
      bytes[1] = static_cast<std::byte>(random() % 18);  // a plausible rice parameter
    expect_harmless(bytes, 1 + random() % kTileElements);
  }
}

ErrorCode code_of(std::initializer_list<unsigned> bytes, std::size_t tile_elements) {
  ByteBuffer buffer;
  for (const unsigned byte : bytes) buffer.push_back(static_cast<std::byte>(byte));
  ByteReader in(buffer);
  const Result<CodedTile> coded = read_positions(in, tile_elements);
  EXPECT_FALSE(coded.ok());
  return coded.ok() ? ErrorCode::kIo : coded.error().code;
}

TEST(PositionCoding, RefusesWhatItWouldNotWrite) {
  constexpr ErrorCode kCorrupt = ErrorCode::kCorruptPayload;
  EXPECT_EQ(code_of({0x80, 0x80, 0x80, 0x01}, 100), kCorrupt);  // a varint of four bytes
  EXPECT_EQ(code_of({101, 0, 1, 0xFF}, 100), kCorrupt);         // more positions than elements
  EXPECT_EQ(code_of({1, 17, 1, 0, 0, 0, 1}, 100), kCorrupt);    // rice beyond 16
  EXPECT_EQ(code_of({1, 0, 1, 0x00}, 100), kCorrupt);           // no end in the unary part
  EXPECT_EQ(code_of({1, 0, 1, 0x03}, 100), kCorrupt);           // two ends for one position
  EXPECT_EQ(code_of({1, 0, 2, 0x01, 0x00}, 100), kCorrupt);     // a byte too many
  EXPECT_EQ(code_of({1, 0, 1, 0x80}, 7), kCorrupt);             // position 7 of 7 elements
  EXPECT_EQ(code_of({1, 16, 1, 0xFF, 0xFF, 1}, 65535), kCorrupt);
}

}  // namespace
}  // namespace longhaul
