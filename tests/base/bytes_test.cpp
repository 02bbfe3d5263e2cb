#include "longhaul/base/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace longhaul {
namespace {

ByteBuffer buffer_of(std::initializer_list<unsigned> bytes) {
  ByteBuffer buffer;
  for (const unsigned byte : bytes) buffer.push_back(static_cast<std::byte>(byte));
  return buffer;
}

TEST(ByteWriter, WritesTheLowestByteFirst) {
  ByteWriter out;
  out.u8(0x01);
  out.u16(0x0302);
  out.u32(0x07060504);
  out.u64(0x0F0E0D0C0B0A0908);
  out.f32(1.0F);
  EXPECT_EQ(out.size(), 19U);
  EXPECT_EQ(std::move(out).release(),
            buffer_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0x80, 0x3F}));
}

TEST(ByteWriter, AppendsBytesAsTheyAre) {
  ByteWriter out;
  out.bytes(buffer_of({9, 8}));
  out.bytes({});
  out.u8(7);
  EXPECT_EQ(std::move(out).release(), buffer_of({9, 8, 7}));
}

TEST(ByteWriter, ExtendsByRoomForTheCaller) {
  ByteWriter out;
  out.u8(1);
  const std::span room = out.extend(3);
  ASSERT_EQ(room.size(), 3U);
  std::ranges::fill(room, std::byte{5});
  EXPECT_TRUE(out.extend(0).empty());
  EXPECT_EQ(std::move(out).release(), buffer_of({1, 5, 5, 5}));
}

TEST(ByteReader, ReadsBackWhatAWriterWrote) {
  ByteWriter out;
  out.u8(200);
  out.u16(60'000);
  out.u32(4'000'000'000U);
  out.u64(std::numeric_limits<std::uint64_t>::max() - 1);
  out.f32(-0.0F);
  const ByteBuffer buffer = std::move(out).release();
  ByteReader in(buffer);
  EXPECT_EQ(in.u8(), 200);
  EXPECT_EQ(in.u16(), 60'000);
  EXPECT_EQ(in.u32(), 4'000'000'000U);
  EXPECT_EQ(in.u64(), std::numeric_limits<std::uint64_t>::max() - 1);
  EXPECT_TRUE(std::signbit(in.f32()));
  EXPECT_EQ(in.remaining(), 0U);
}

TEST(ByteReader, GivesViewsIntoWhatItReads) {
  const ByteBuffer buffer = buffer_of({1, 2, 3, 4});
  ByteReader in(buffer);
  (void)in.u8();
  const ByteView view = in.bytes(2);
  EXPECT_EQ(view.data(), buffer.data() + 1);
  EXPECT_EQ(in.remaining(), 1U);
}

TEST(ByteReader, NeverReadsPastTheEnd) {
  const ByteBuffer buffer = buffer_of({1, 2, 3});
  ByteReader in(buffer);
  EXPECT_THROW((void)in.u32(), std::logic_error);
  EXPECT_THROW((void)in.bytes(4), std::logic_error);
  EXPECT_EQ(in.remaining(), 3U);  // a failed read takes nothing
  EXPECT_EQ(in.bytes(3).size(), 3U);
  EXPECT_THROW((void)in.u8(), std::logic_error);
  EXPECT_THROW((void)ByteReader({}).u8(), std::logic_error);
}

TEST(LoadLe, ReadsFromAnyAddress) {
  const ByteBuffer buffer = buffer_of({0xFF, 0x04, 0x03, 0x02, 0x01});
  EXPECT_EQ(load_le<std::uint32_t>(buffer.data() + 1), 0x01020304U);
  EXPECT_EQ(load_le<std::uint16_t>(buffer.data() + 3), 0x0102U);
}

TEST(StoreLe, WritesToAnyAddress) {
  ByteBuffer buffer = buffer_of({0xFF, 0, 0, 0, 0, 0xFF});
  store_le(buffer.data() + 1, std::uint32_t{0x01020304});
  EXPECT_EQ(buffer, buffer_of({0xFF, 4, 3, 2, 1, 0xFF}));
}

}  // namespace
}  // namespace longhaul
