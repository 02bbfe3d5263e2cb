// Queues in front of a line, and links of two of them.
#include "longhaul/link/link_model.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

RateTrace rate(double bytes_per_second) {
  return RateTrace::constant({.bytes_per_second = bytes_per_second});
}

TEST(Fifo, ServesInOrderOneAtATime) {
  Fifo line(rate(10));
  EXPECT_DOUBLE_EQ(line.pass(Seconds(1), 20).end.count(), 3);
  EXPECT_DOUBLE_EQ(line.pass(Seconds(1), 10).end.count(), 4);  // waits for the first
  EXPECT_DOUBLE_EQ(line.pass(Seconds(2), 10).end.count(), 5);
  EXPECT_DOUBLE_EQ(line.pass(Seconds(8), 10).end.count(), 9);  // the line was idle
}

TEST(Fifo, NothingToSendStillWaitsItsTurn) {
  Fifo line(rate(10));
  EXPECT_DOUBLE_EQ(line.pass(Seconds(0), 50).end.count(), 5);
  EXPECT_DOUBLE_EQ(line.pass(Seconds(1), 0).end.count(), 5);
  EXPECT_DOUBLE_EQ(line.pass(Seconds(7), 0).end.count(), 7);
}

TEST(Fifo, AQueueAsAWholeTakesAsLongAsItsBytes) {
  const RateTrace trace({{.duration = Seconds(1), .rate = {.bytes_per_second = 3}},
                         {.duration = Seconds(2), .rate = {.bytes_per_second = 11}}});
  Fifo line(trace);
  Seconds end{};
  for (int i = 0; i < 20; ++i) end = line.pass(Seconds(0.5), 7).end;
  EXPECT_NEAR(end.count(), trace.finish(Seconds(0.5), 140).count(), 1e-9);
}

TEST(SimulatedLink, LatencyOccupiesNoLine) {
  SimulatedLink link({.up = rate(10), .down = rate(10), .latency = Seconds(100)});
  EXPECT_DOUBLE_EQ(link.send_up(Seconds(0), 10).end.count(), 101);
  EXPECT_DOUBLE_EQ(link.send_up(Seconds(0), 10).end.count(),
                   102);  // right behind, not after arrival
  EXPECT_DOUBLE_EQ(link.send_up(Seconds(50), 10).end.count(), 151);
}

TEST(SimulatedLink, DirectionsDoNotDisturbEachOther) {
  SimulatedLink link({.up = rate(1), .down = rate(10), .latency = Seconds(0.5)});
  EXPECT_DOUBLE_EQ(link.send_up(Seconds(0), 1000).end.count(), 1000.5);
  EXPECT_DOUBLE_EQ(link.send_down(Seconds(0), 1000).end.count(), 100.5);
  EXPECT_DOUBLE_EQ(link.send_down(Seconds(0), 10).end.count(), 101.5);
}

}  // namespace
}  // namespace longhaul
