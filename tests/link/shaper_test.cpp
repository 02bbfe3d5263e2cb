// When bytes pass a shaped line: turns, idle time, late looks, ends, blocks, outages.
#include "longhaul/link/shaper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

namespace longhaul {
namespace {

using Delivery = Shaper::Delivery;

constexpr Seconds kEndOfTime{std::numeric_limits<double>::max()};

RateTrace steady(double bytes_per_second) {
  return RateTrace::constant({.bytes_per_second = bytes_per_second});
}

void push_at(Shaper& shaper, double now, Shaper::ConnectionId connection, std::size_t bytes) {
  shaper.push(Seconds(now), connection, bytes, Seconds(now));
}

std::vector<Delivery> pop_all(Shaper& shaper, Seconds now = kEndOfTime) {
  std::vector<Delivery> all;
  while (const auto delivery = shaper.pop(now)) all.push_back(*delivery);
  return all;
}

std::size_t bytes_of(const std::vector<Delivery>& deliveries, Shaper::ConnectionId connection) {
  std::size_t bytes = 0;
  for (const Delivery& delivery : deliveries)
    bytes += delivery.connection == connection ? delivery.bytes : 0;
  return bytes;
}

TEST(Shaper, DeliversALatencyAfterTheLastByteHasPassed) {
  Shaper shaper(steady(100), Seconds(5));
  push_at(shaper, 1, 7, 200);
  EXPECT_EQ(shaper.next_event(), Seconds(3));
  EXPECT_FALSE(shaper.pop(Seconds(7.99)));
  EXPECT_EQ(shaper.next_event(), Seconds(8));
  const auto delivery = shaper.pop(Seconds(8));
  ASSERT_TRUE(delivery);
  EXPECT_EQ(delivery->connection, 7U);
  EXPECT_EQ(delivery->bytes, 200U);
  EXPECT_FALSE(delivery->is_end);
  EXPECT_EQ(delivery->due, Seconds(8));
  EXPECT_FALSE(shaper.next_event());
}

TEST(Shaper, SlicesAreTwoMillisecondsWithinBounds) {
  const auto first_slice = [](double bytes_per_second) {
    Shaper shaper(steady(bytes_per_second), Seconds(0));
    push_at(shaper, 0, 1, 50'000);
    return shaper.pop(kEndOfTime)->bytes;
  };
  EXPECT_EQ(first_slice(1e3), kMinSliceBytes);
  EXPECT_EQ(first_slice(1e6), 2000U);
  EXPECT_EQ(first_slice(1e9), kMaxSliceBytes);
}

TEST(Shaper, APingWaitsForOneSliceOfBulkDataNotForItsQueue) {
  Shaper shaper(steady(1e6), Seconds(0));
  push_at(shaper, 0, 1, 64'000);
  push_at(shaper, 0.001, 2, 100);
  const auto by_then = pop_all(shaper, Seconds(0.0021001));
  EXPECT_EQ(bytes_of(by_then, 1), 2000U);
  EXPECT_EQ(bytes_of(by_then, 2), 100U);
}

TEST(Shaper, LosesNoTimeToALateLook) {
  Shaper shaper(steady(1e6), Seconds(0));
  push_at(shaper, 0, 1, 10'000);
  EXPECT_EQ(bytes_of(pop_all(shaper, Seconds(0.0055)), 1), 4000U);
  EXPECT_NEAR(shaper.next_event()->count(), 0.006, 1e-12);
  push_at(shaper, 0.009, 1, 2000);  // the line is busy: they follow at once
  EXPECT_NEAR(pop_all(shaper).back().due.count(), 0.012, 1e-12);
}

TEST(Shaper, IdleTimeIsNoCredit) {
  Shaper shaper(steady(100), Seconds(0));
  push_at(shaper, 0, 1, 100);
  push_at(shaper, 50, 1, 100);
  EXPECT_EQ(pop_all(shaper).back().due, Seconds(51));
}

TEST(Shaper, BytesThatHadToWaitForRoomUseTheTimeSinceTheLineWasFree) {
  Shaper shaper(steady(100), Seconds(0));
  push_at(shaper, 0, 1, 100);
  shaper.push(Seconds(5), 1, 100, Seconds(0.5));  // the line was free from 1 on
  EXPECT_EQ(pop_all(shaper).back().due, Seconds(2));
  shaper.push(Seconds(9), 1, 100, Seconds(7));
  EXPECT_EQ(pop_all(shaper).back().due, Seconds(8));
}

TEST(Shaper, WaitsThroughStretchesWithoutRate) {
  const RateTrace trace({{.duration = Seconds(1), .rate = {.bytes_per_second = 1000}},
                         {.duration = Seconds(9), .rate = {}}});
  Shaper shaper(trace, Seconds(0));
  push_at(shaper, 0.5, 1, 750);
  EXPECT_EQ(bytes_of(pop_all(shaper, Seconds(9.99)), 1), 256U);
  EXPECT_NEAR(shaper.next_event()->count(), 10.012, 1e-9);
  EXPECT_NEAR(pop_all(shaper).back().due.count(), 10.25, 1e-9);
}

TEST(Shaper, AnEndFollowsTheLastByte) {
  Shaper shaper(steady(1000), Seconds(1));
  push_at(shaper, 0, 1, 300);
  shaper.push_end(Seconds(0), 1);
  const auto all = pop_all(shaper);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_FALSE(all[0].is_end);
  EXPECT_TRUE(all[1].is_end);
  EXPECT_NEAR(all[1].due.count(), 1.3, 1e-12);
}

TEST(Shaper, TheEndOfAQuietConnectionTakesALatencyAndNoBytes) {
  Shaper shaper(steady(1000), Seconds(3));
  shaper.push_end(Seconds(2), 1);
  const auto all = pop_all(shaper);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].is_end);
  EXPECT_EQ(all[0].bytes, 0U);
  EXPECT_EQ(all[0].due, Seconds(5));
}

TEST(Shaper, ABlockedConnectionLeavesTheLineToTheOthers) {
  Shaper shaper(steady(1000), Seconds(0));
  push_at(shaper, 0, 1, 1000);
  push_at(shaper, 0, 2, 1000);
  shaper.set_blocked(Seconds(0.1), 1, true);
  const auto meanwhile = pop_all(shaper, Seconds(1.9));
  EXPECT_EQ(bytes_of(meanwhile, 1), 256U);  // was passing already
  EXPECT_EQ(bytes_of(meanwhile, 2), 1000U);
  EXPECT_FALSE(shaper.next_event());
  shaper.set_blocked(Seconds(5), 1, false);
  EXPECT_NEAR(pop_all(shaper).back().due.count(), 5.744, 1e-9);
}

TEST(Shaper, NothingPassesWhileHeldAndAllOfItAfterwards) {
  Shaper shaper(steady(1000), Seconds(1));
  push_at(shaper, 0, 1, 512);
  shaper.hold(Seconds(0.3));  // one slice has passed, the second passes
  push_at(shaper, 0.4, 2, 100);
  EXPECT_FALSE(shaper.next_event());
  EXPECT_FALSE(shaper.pop(Seconds(9)));
  shaper.release(Seconds(10));
  EXPECT_EQ(bytes_of(pop_all(shaper, Seconds(10)), 1), 256U);
  const auto rest = pop_all(shaper);
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_NEAR(rest[0].due.count(), 11.256, 1e-9);
  EXPECT_NEAR(rest[1].due.count(), 11.356, 1e-9);
}

TEST(Shaper, ServesWhatCameWhileHeldEvenIfItWasIdleBefore) {
  Shaper shaper(steady(1000), Seconds(0));
  shaper.hold(Seconds(1));
  push_at(shaper, 2, 1, 100);
  shaper.release(Seconds(3));
  EXPECT_NEAR(pop_all(shaper).back().due.count(), 3.1, 1e-12);
}

TEST(Shaper, RestartsItsTrace) {
  const RateTrace trace({{.duration = Seconds(10), .rate = {}},
                         {.duration = Seconds(10), .rate = {.bytes_per_second = 1000}}});
  Shaper shaper(trace, Seconds(0));
  push_at(shaper, 9, 1, 100);
  shaper.restart_trace(Seconds(9.5));
  EXPECT_NEAR(pop_all(shaper).back().due.count(), 19.6, 1e-9);
}

TEST(Shaper, QueuesTwiceWhatFillsALoop) {
  EXPECT_EQ(Shaper(steady(1e6), Seconds(0.01)).queue_limit(), 64U * 1024);
  EXPECT_EQ(Shaper(steady(1e6), Seconds(0.1)).queue_limit(), 400'000U);
}

TEST(Shaper, SharesRoomAmongThoseWhoHaveSomethingToSend) {
  Shaper shaper(steady(1), Seconds(0));
  const std::size_t limit = shaper.queue_limit();
  EXPECT_EQ(shaper.room(Seconds(0), 1), limit);
  push_at(shaper, 0, 1, limit + kMinSliceBytes);  // of which one slice is in service
  EXPECT_EQ(shaper.waiting_bytes(), limit);
  EXPECT_EQ(shaper.room(Seconds(0), 1), 0U);
  EXPECT_EQ(shaper.room(Seconds(0), 2), limit / 2);
  for (Shaper::ConnectionId id = 2; id < 100; ++id) push_at(shaper, 0, id, 1);
  EXPECT_EQ(shaper.room(Seconds(0), 100), kMaxSliceBytes);
}

TEST(Shaper, ForgetsWhatARemovedConnectionHadWaiting) {
  Shaper shaper(steady(1000), Seconds(0));
  push_at(shaper, 0, 1, 10'000);
  push_at(shaper, 0, 2, 100);
  shaper.remove(1);
  EXPECT_EQ(shaper.waiting_bytes(), 100U);
  const auto all = pop_all(shaper);
  EXPECT_EQ(bytes_of(all, 1), 256U);  // was passing already
  EXPECT_NEAR(all.back().due.count(), 0.356, 1e-9);
}

TEST(Shaper, HasNoNegativeLatency) {
  EXPECT_THROW(Shaper(steady(1), Seconds(-1)), std::logic_error);
}

}  // namespace
}  // namespace longhaul
