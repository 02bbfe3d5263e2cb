#include "longhaul/sync/work_timer.h"

#include <gtest/gtest.h>

#include "longhaul/sync/timed_exchange.h"
#include "tests/base/fake_clock.h"

namespace longhaul {
namespace {

TimePoint at_seconds(double seconds) { return time_after(TimePoint{}, Seconds(seconds)); }

TEST(WorkTimer, WorkAfterAGradientCountsForTheNext) {
  WorkTimer timer;
  timer.begin(at_seconds(1));
  EXPECT_EQ(timer.due(Seconds(0.06)), at_seconds(1.06));
  timer.has_gradient(at_seconds(1.06));
  EXPECT_NEAR(timer.computing().count(), 0.06, 1e-8);
  timer.end(at_seconds(1.10), Seconds(0.03));  // 10 ms of work, 30 of waiting
  timer.begin(at_seconds(1.2));                // what lies between steps is nobody's
  timer.has_gradient(at_seconds(1.25));
  EXPECT_NEAR(timer.computing().count(), 0.06, 1e-8);
}

TEST(WorkTimer, ReplicasThatWaitForNothingKeepTheirPace) {
  WorkTimer timer;
  TimePoint now = at_seconds(0);
  for (int step = 1; step <= 100; ++step) {
    timer.begin(now);
    const TimePoint due = timer.due(Seconds(0.06));
    timer.has_gradient(due);
    now = time_after(due, Seconds(0.004));  // woken up late, then its own step
    timer.end(now, Seconds(0));
    EXPECT_NEAR(Seconds(due - at_seconds(0)).count(), 0.06 * step, 1e-6);
  }
}

TEST(WorkTimer, AGradientThatSomeoneHasCutShortOwesNothing) {
  WorkTimer timer;
  timer.begin(at_seconds(1));
  timer.has_gradient(at_seconds(1.06));
  timer.end(at_seconds(1.01), Seconds(0));
  timer.begin(at_seconds(2));
  EXPECT_EQ(timer.due(Seconds(0.06)), at_seconds(2.06));
}

TEST(WaitingShare, IsThatOfTheLastStepWhereEveryStepHasARound) {
  WorkTimer timer;
  timer.count(Seconds(1), Seconds(3), 1);
  EXPECT_DOUBLE_EQ(timer.waiting_share(), 0.75);
  timer.count(Seconds(1), Seconds(0), 1);
  EXPECT_DOUBLE_EQ(timer.waiting_share(), 0);
}

TEST(WaitingShare, IsThatOfTheLastWholePeriodInEachOfItsSteps) {
  WorkTimer timer;
  for (int period = 0; period < 3; ++period) {
    for (int step = 0; step < 4; ++step) {
      EXPECT_DOUBLE_EQ(timer.waiting_share(), period == 0 ? 0 : 0.75);
      timer.count(Seconds(1), Seconds(step == 3 ? 12 : 0), 4);
    }
  }
}

TEST(WaitingShare, StaysWhatItWasWhereNothingTakesTime) {
  WorkTimer timer;
  timer.count(Seconds(1), Seconds(1), 1);
  timer.count(Seconds(0), Seconds(0), 1);
  EXPECT_DOUBLE_EQ(timer.waiting_share(), 0.5);
}

// Means take a second.
class SlowExchange final : public Exchange {
 public:
  explicit SlowExchange(FakeClock& clock) : clock_(clock) {}
  void submit(Update /*update*/) override {}
  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    clock_.advance(Seconds(1));
    return Mean{.round = round};
  }

 private:
  FakeClock& clock_;
};

TEST(TimedExchange, CountsWhatItWaitsForMeansAndNothingElse) {
  FakeClock clock;
  SlowExchange slow(clock);
  TimedExchange exchange(slow, clock);
  EXPECT_EQ(exchange.take_waited(), Seconds(0));
  for (std::uint64_t step = 0; step < 2; ++step) {
    clock.advance(Seconds(0.3));
    EXPECT_EQ(exchange.collect({.step = step}, Deadline::max())->round.step, step);
  }
  EXPECT_EQ(exchange.take_waited(), Seconds(2));
  EXPECT_EQ(exchange.take_waited(), Seconds(0));
}

}  // namespace
}  // namespace longhaul
