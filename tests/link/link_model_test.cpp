// Queues in front of a line.
#include "longhaul/link/link_model.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

RateTrace rate(double bytes_per_second) {
  return RateTrace::constant({.bytes_per_second = bytes_per_second});
}

TEST(Fifo, ServesInOrderOneAtATime) {
  Fifo line(rate(10));
  EXPECT_DOUBLE_EQ(line.send(Seconds(1), 20).count(), 3);
  EXPECT_DOUBLE_EQ(line.send(Seconds(1), 10).count(), 4);  // waits for the first
  EXPECT_DOUBLE_EQ(line.send(Seconds(2), 10).count(), 5);
  EXPECT_DOUBLE_EQ(line.send(Seconds(8), 10).count(), 9);  // the line was idle
}

TEST(Fifo, NothingToSendStillWaitsItsTurn) {
  Fifo line(rate(10));
  EXPECT_DOUBLE_EQ(line.send(Seconds(0), 50).count(), 5);
  EXPECT_DOUBLE_EQ(line.send(Seconds(1), 0).count(), 5);
  EXPECT_DOUBLE_EQ(line.send(Seconds(7), 0).count(), 7);
}

TEST(Fifo, AQueueAsAWholeTakesAsLongAsItsBytes) {
  const RateTrace trace({{.duration = Seconds(1), .rate = {.bytes_per_second = 3}},
                         {.duration = Seconds(2), .rate = {.bytes_per_second = 11}}});
  Fifo line(trace);
  Seconds end{};
  for (int i = 0; i < 20; ++i) end = line.send(Seconds(0.5), 7);
  EXPECT_NEAR(end.count(), trace.finish(Seconds(0.5), 140).count(), 1e-9);
}

TEST(Fifo, LatencyOccupiesNoLine) {
  Fifo line(rate(10), Seconds(100));
  EXPECT_DOUBLE_EQ(line.first_byte(Seconds(0)).count(), 100);
  EXPECT_DOUBLE_EQ(line.send(Seconds(0), 10).count(), 101);
  EXPECT_DOUBLE_EQ(line.send(Seconds(0), 10).count(),
                   102);  // right behind, not after arrival
  EXPECT_DOUBLE_EQ(line.send(Seconds(50), 10).count(), 151);
}

}  // namespace
}  // namespace longhaul
