#include "longhaul/transport/lanes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/transport/hand_stream.h"

namespace longhaul {
namespace {

using testing::HandStream;
using testing::HandStreamPtr;

constexpr CargoOptions kLaneLimits{.most_bytes = 100'000'000, .most_transfers = 10};

SharedBytes zeros(std::size_t count) { return std::make_shared<const ByteBuffer>(count); }

// Lanes whose streams take everything at once.
class LanesTest : public ::testing::Test {
 protected:
  void start(std::size_t count, const std::optional<Bandwidth>& rate) {
    lanes_ = std::make_unique<Lanes>(kLaneLimits, rate);
    for (StreamId id = 1; id <= count; ++id) {
      streams_.push_back(std::make_shared<HandStream>());
      lanes_->add(id, streams_.back());
    }
  }
  // Bytes that were written since the last call.
  std::size_t written() {
    std::size_t bytes = 0;
    for (bool is_quiet = false; !is_quiet;) {
      is_quiet = true;
      for (StreamId id = 1; id <= streams_.size(); ++id) {
        const auto frame = streams_[id - 1]->take(Frame::kChunk);
        if (!frame) continue;
        bytes += frame->chunk().data().size();
        is_quiet = false;
        lanes_->on_written(id);
      }
    }
    return bytes;
  }
  // What passes at each tick, from the first one on.
  std::vector<std::size_t> ticks(std::size_t count, Seconds every) {
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i < count; ++i) {
      lanes_->on_tick(time_after(TimePoint{}, every * static_cast<double>(i)));
      bytes.push_back(written());
    }
    return bytes;
  }

  std::unique_ptr<Lanes> lanes_;
  std::vector<HandStreamPtr> streams_;
};

TEST_F(LanesTest, WithoutARateEverythingIsSentAtOnce) {
  start(2, std::nullopt);
  lanes_->send({}, zeros(5'000'000));
  EXPECT_EQ(written(), 5'000'000U);
}

TEST_F(LanesTest, NoSpanOfTimeCarriesMoreThanTheRate) {
  constexpr double kRate = 1e6;
  for (const std::size_t count : {1U, 4U}) {
    streams_.clear();
    start(count, Bandwidth{.bytes_per_second = kRate});
    lanes_->send({}, zeros(20'000'000));
    const std::vector<std::size_t> bytes = ticks(1000, Seconds(0.01));
    const double burst = kRate * RateCap::kSaved.count() + 50'000;  // and one chunk
    for (std::size_t first = 0; first < bytes.size(); first += 7) {
      double sum = 0;
      for (std::size_t last = first; last < bytes.size(); ++last) {
        sum += static_cast<double>(bytes[last]);
        ASSERT_LE(sum, kRate * 0.01 * static_cast<double>(last - first) + burst)
            << first << " to " << last;
      }
    }
  }
}

TEST_F(LanesTest, TheRateIsUsedUpHoweverOftenSomeoneLooks) {
  for (const double every : {0.001, 0.02, 0.05, 0.1}) {
    streams_.clear();
    start(3, Bandwidth{.bytes_per_second = 1e6});
    lanes_->send({}, zeros(20'000'000));
    double sum = 0;
    for (const std::size_t bytes : ticks(static_cast<std::size_t>(10 / every) + 1, Seconds(every)))
      sum += static_cast<double>(bytes);
    EXPECT_NEAR(sum, 10e6, 50'001) << "looked at every " << every << " s: within a chunk";
  }
}

TEST_F(LanesTest, WhatWasNotUsedIsSavedForATenthOfASecondOnly) {
  start(1, Bandwidth{.bytes_per_second = 1e6});
  lanes_->on_tick(TimePoint{});
  lanes_->on_tick(time_after(TimePoint{}, Seconds(60)));
  lanes_->send({}, zeros(20'000'000));
  EXPECT_EQ(written(), 100'000U);
}

TEST_F(LanesTest, WhileItDoesNotReadNothingMoreIsAskedFor) {
  start(1, std::nullopt);
  OutgoingCargo cargo;
  cargo.add({}, zeros(4096));
  EXPECT_EQ(streams_[0]->reads, 1);
  const auto hear = [&] {
    Frame frame = cargo.next_chunk();
    EXPECT_TRUE(lanes_->on_chunk(1, *frame.mutable_chunk(), TimePoint{}).ok());
  };
  hear();
  EXPECT_EQ(streams_[0]->reads, 2);
  lanes_->set_reading(false);
  hear();
  EXPECT_EQ(streams_[0]->reads, 2);
  lanes_->set_reading(true);
  EXPECT_EQ(streams_[0]->reads, 3);
  lanes_->set_reading(false);
  lanes_->set_reading(true);
  EXPECT_EQ(streams_[0]->reads, 3) << "one is on its way";
}

TEST_F(LanesTest, ASlowRateSendsSmallChunks) {
  start(1, Bandwidth{.bytes_per_second = 30'000});
  lanes_->send({}, zeros(1'000'000));
  for (const std::size_t bytes : ticks(100, Seconds(0.05))) EXPECT_LE(bytes, 3000U);
}

}  // namespace
}  // namespace longhaul
