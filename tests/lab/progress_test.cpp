#include "longhaul/lab/progress.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/base/fake_clock.h"

namespace longhaul::lab {
namespace {

TEST(Progress, RewritesOneLineOnATerminalAndEstimatesTheTimeLeft) {
  FakeClock clock;
  std::ostringstream out;
  Progress progress(out, /*is_terminal=*/true, clock, 2, 100);
  progress.start_run("d-sgd");
  clock.advance(Seconds(5));
  progress.step(50);
  EXPECT_EQ(out.str(), "\r\033[K[1/2] d-sgd: step 50 of 100, about 15 s left");
  clock.advance(Seconds(0.01));
  progress.step(51);
  progress.clear();
  EXPECT_TRUE(out.str().ends_with("left\r\033[K"));
}

TEST(Progress, WritesAPlainLineAfterTwoSecondsAndEveryTenElsewhere) {
  FakeClock clock;
  std::ostringstream out;
  Progress progress(out, /*is_terminal=*/false, clock, 1, 100);
  progress.start_run("dga");
  for (std::size_t step = 1; step <= 25; ++step) {
    clock.advance(Seconds(1));
    progress.step(step);
  }
  EXPECT_EQ(out.str(),
            "[1/1] dga: step 2 of 100, about 2 min left\n"
            "[1/1] dga: step 12 of 100, about 88 s left\n"
            "[1/1] dga: step 22 of 100, about 78 s left\n");
}

TEST(Progress, ARunThatStopsEarlyCountsAsAWholeOne) {
  FakeClock clock;
  std::ostringstream out;
  Progress progress(out, /*is_terminal=*/true, clock, 2, 100);
  progress.start_run("a");
  progress.finish_run();
  progress.start_run("b");
  clock.advance(Seconds(15));
  progress.step(50);
  EXPECT_EQ(out.str(), "\r\033[K[2/2] b: step 50 of 100, about 5 s left");
}

}  // namespace
}  // namespace longhaul::lab
