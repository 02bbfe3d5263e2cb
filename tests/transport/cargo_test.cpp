#include "longhaul/transport/cargo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace longhaul {
namespace {

constexpr CargoOptions kLimits{.most_bytes = 10'000'000, .most_transfers = 4};

SharedBytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ByteBuffer bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return std::make_shared<const ByteBuffer>(std::move(bytes));
}

std::vector<Frame> chunks_of(const SharedBytes& bytes, TransferId id = {}) {
  OutgoingCargo out;
  out.add(id, bytes);
  std::vector<Frame> frames;
  while (!out.is_empty()) frames.push_back(out.next_chunk());
  return frames;
}

TimePoint after(double seconds) { return time_after(TimePoint{}, Seconds(seconds)); }

TEST(Cargo, UnfinishedTransfersTakeNoMoreMemoryThanIsAllowed) {
  IncomingCargo in({.most_bytes = 10'000, .most_transfers = 100, .most_pending_bytes = 15'000});
  const auto first_of = [](std::uint64_t step) {
    Frame frame;
    frame.mutable_chunk()->set_step(step);
    frame.mutable_chunk()->set_total(10'000);
    frame.mutable_chunk()->set_data(std::string(kLeastChunkBytes, 'x'));
    return frame;
  };
  Frame first = first_of(1);
  EXPECT_TRUE(in.take(*first.mutable_chunk(), after(0)).ok());
  Frame second = first_of(2);
  EXPECT_FALSE(in.take(*second.mutable_chunk(), after(0)).ok());
  Frame rest = first_of(1);
  rest.mutable_chunk()->set_offset(kLeastChunkBytes);
  rest.mutable_chunk()->set_data(std::string(10'000 - kLeastChunkBytes, 'x'));
  ASSERT_TRUE(in.take(*rest.mutable_chunk(), after(0)).ok());
  second = first_of(2);
  EXPECT_TRUE(in.take(*second.mutable_chunk(), after(0)).ok());  // there is room again
}

// Many small pieces would take far more memory than what is in them.
TEST(Cargo, OnlyTheLastPieceMayBeSmall) {
  IncomingCargo in(kLimits);
  const auto taken = [&](std::size_t offset, std::size_t size) {
    v1::Chunk chunk;
    chunk.set_total(5'000);
    chunk.set_offset(offset);
    chunk.set_data(std::string(size, 'x'));
    return in.take(chunk, after(0)).ok();
  };
  EXPECT_FALSE(taken(0, 1));
  EXPECT_FALSE(taken(1'000, kLeastChunkBytes - 1));
  EXPECT_TRUE(taken(1'000, kLeastChunkBytes));
  EXPECT_TRUE(taken(4'999, 1));
}

TEST(Cargo, AnUpdateTellsWhatItDependsOnOnceAndBriefly) {
  v1::Attendance attendance;
  attendance.set_since(3);
  OutgoingCargo out;
  out.add({.step = 9}, random_bytes(50'000, 1), attendance);
  IncomingCargo in(kLimits);
  std::optional<Arrival> arrived;
  int told = 0;
  while (!out.is_empty()) {
    Frame frame = out.next_chunk();
    told += frame.chunk().has_attendance() ? 1 : 0;
    arrived = in.take(*frame.mutable_chunk(), after(0)).value();
  }
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->attendance.since(), 3U);
  EXPECT_EQ(told, 1);
  for (int i = 0; i < 129; ++i) attendance.add_sat_out(1);
  out.add({.step = 10}, random_bytes(10, 1), attendance);
  Frame frame = out.next_chunk();
  EXPECT_FALSE(in.take(*frame.mutable_chunk(), after(0)).ok());
}

TEST(Cargo, ARopeIsSentAsOne) {
  const SharedBytes first = random_bytes(70'000, 1);
  const SharedBytes second = random_bytes(50'001, 2);
  ByteRope rope = first;
  rope.append({}, nullptr);
  rope.append(second);
  rope.append({}, first);
  ByteBuffer whole = *first;
  whole.insert(whole.end(), second->begin(), second->end());
  OutgoingCargo out;
  out.add({}, rope);
  IncomingCargo in(kLimits);
  EXPECT_FALSE(in.progress(Cargo::kUpdate));
  std::optional<Arrival> arrived;
  while (!out.is_empty()) {
    ASSERT_FALSE(arrived);
    const std::optional<TransferProgress> sent = out.progress(Cargo::kUpdate);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->total, whole.size());
    if (sent->done > 0) {
      const std::optional<TransferProgress> came = in.progress(Cargo::kUpdate);
      ASSERT_TRUE(came);
      EXPECT_EQ(came->done, sent->done);
    }
    Frame frame = out.next_chunk();
    arrived = in.take(*frame.mutable_chunk(), after(0)).value();
  }
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->bytes, whole);
}

TEST(Cargo, ComesTogetherInWhateverOrderItsChunksArrive) {
  for (const std::size_t size : {0U, 1U, 1023U, 1025U, 50'000U, 5'000'000U}) {
    const SharedBytes bytes = random_bytes(size, size);
    std::vector<Frame> frames = chunks_of(bytes, {.cargo = Cargo::kMean, .step = 7});
    std::ranges::shuffle(frames, std::mt19937_64(size + 1));
    IncomingCargo in(kLimits);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      Result<std::optional<Arrival>> arrival = in.take(*frames[i].mutable_chunk(), after(0));
      ASSERT_TRUE(arrival.ok()) << arrival.error().message;
      ASSERT_EQ(arrival->has_value(), i + 1 == frames.size());
      if (!arrival->has_value()) continue;
      EXPECT_EQ((*arrival)->bytes, *bytes);
      EXPECT_EQ((*arrival)->id, (TransferId{.cargo = Cargo::kMean, .step = 7}));
    }
  }
}

TEST(Cargo, TransfersMayMix) {
  const SharedBytes first = random_bytes(30'000, 1);
  const SharedBytes second = random_bytes(20'000, 2);
  std::vector<Frame> frames = chunks_of(first, {.step = 1});
  std::ranges::move(chunks_of(second, {.step = 2}), std::back_inserter(frames));
  std::ranges::shuffle(frames, std::mt19937_64(3));
  IncomingCargo in(kLimits);
  std::size_t complete = 0;
  for (Frame& frame : frames) {
    const Result<std::optional<Arrival>> arrival = in.take(*frame.mutable_chunk(), after(0));
    ASSERT_TRUE(arrival.ok());
    if (!arrival->has_value()) continue;
    ++complete;
    EXPECT_EQ((*arrival)->bytes, (*arrival)->id.step == 1 ? *first : *second);
  }
  EXPECT_EQ(complete, 2U);
}

TEST(Cargo, TimesTheBytesBehindTheFirstChunk) {
  std::vector<Frame> frames = chunks_of(random_bytes(16'000, 1));
  IncomingCargo in(kLimits);
  double time = 5;
  for (Frame& frame : frames) {
    const Result<std::optional<Arrival>> arrival = in.take(*frame.mutable_chunk(), after(time));
    time += 0.01;
    if (!arrival->has_value()) continue;
    EXPECT_EQ((*arrival)->timed_bytes, 16'000U - 1024U);
    EXPECT_NEAR((*arrival)->duration.count(), 0.01 * static_cast<double>(frames.size() - 1), 1e-9);
  }
}

v1::Chunk chunk_with(std::uint64_t total, std::uint64_t offset, std::size_t size) {
  v1::Chunk chunk;
  chunk.set_total(total);
  chunk.set_offset(offset);
  chunk.set_data(std::string(size, 'x'));
  return chunk;
}

TEST(Cargo, RefusesWhatCannotBe) {
  const auto refused = [](v1::Chunk chunk) {
    IncomingCargo in(kLimits);
    v1::Chunk earlier = chunk_with(10'000, 1'000, 2'000);
    EXPECT_TRUE(in.take(earlier, after(0)).ok());
    return !in.take(chunk, after(0)).ok();
  };
  EXPECT_FALSE(refused(chunk_with(10'000, 3'000, 7'000)));
  EXPECT_TRUE(refused(chunk_with(10'000, 1'900, 1'100))) << "came before";
  EXPECT_TRUE(refused(chunk_with(10'000, 0, 1'100))) << "overlaps";
  EXPECT_TRUE(refused(chunk_with(10'001, 5'000, 1'100))) << "another size";
  EXPECT_TRUE(refused(chunk_with(10'000, 9'900, 200))) << "over the end";
  EXPECT_TRUE(refused(chunk_with(10'000, ~0ULL, 2'000))) << "far over the end";
  EXPECT_TRUE(refused(chunk_with(10'000, 5'000, 0))) << "nothing";
  EXPECT_TRUE(refused(chunk_with(kLimits.most_bytes + 1, 0, 2'000))) << "too large";
  v1::Chunk unknown = chunk_with(10'000, 5'000, 2'000);
  unknown.set_cargo(static_cast<v1::Cargo>(77));
  EXPECT_TRUE(refused(unknown));
}

TEST(Cargo, HoldsOnlySoManyTransfersAtOnce) {
  IncomingCargo in(kLimits);
  for (std::uint64_t step = 0; step < kLimits.most_transfers; ++step) {
    v1::Chunk chunk = chunk_with(10'000, 0, 1'024);
    chunk.set_step(step);
    EXPECT_TRUE(in.take(chunk, after(0)).ok());
  }
  v1::Chunk chunk = chunk_with(10'000, 0, 1'024);
  chunk.set_step(99);
  EXPECT_FALSE(in.take(chunk, after(0)).ok());
}

}  // namespace
}  // namespace longhaul
