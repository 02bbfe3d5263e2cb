#include "longhaul/sync/work_timer.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TimePoint at(double seconds) { return time_after(TimePoint{}, Seconds(seconds)); }

TEST(WorkTimer, WorkAfterAGradientCountsForTheNext) {
  WorkTimer timer;
  timer.begin(at(1));
  EXPECT_EQ(timer.due(Seconds(0.06)), at(1.06));
  timer.has_gradient(at(1.06));
  EXPECT_NEAR(timer.computing().count(), 0.06, 1e-8);
  timer.end(at(1.10), Seconds(0.03));  // 10 ms of work, 30 of waiting
  timer.begin(at(1.2));                // what lies between steps is nobody's
  timer.has_gradient(at(1.25));
  EXPECT_NEAR(timer.computing().count(), 0.06, 1e-8);
}

TEST(WorkTimer, ReplicasThatWaitForNothingKeepTheirPace) {
  WorkTimer timer;
  TimePoint now = at(0);
  for (int step = 1; step <= 100; ++step) {
    timer.begin(now);
    const TimePoint due = timer.due(Seconds(0.06));
    timer.has_gradient(due);
    now = time_after(due, Seconds(0.004));  // woken up late, then its own step
    timer.end(now, Seconds(0));
    EXPECT_NEAR((due - at(0)).count() * 1e-9, 0.06 * step, 1e-6);
  }
}

TEST(WorkTimer, AGradientThatSomeoneHasCutShortOwesNothing) {
  WorkTimer timer;
  timer.begin(at(1));
  timer.has_gradient(at(1.06));
  timer.end(at(1.01), Seconds(0));
  timer.begin(at(2));
  EXPECT_EQ(timer.due(Seconds(0.06)), at(2.06));
}

}  // namespace
}  // namespace longhaul
