#include "longhaul/base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace longhaul {
namespace {

class Crew : public testing::TestWithParam<std::size_t> {};

TEST_P(Crew, RunsEachTaskOnce) {
  Workers workers(GetParam());
  EXPECT_EQ(workers.count(), GetParam());
  for (const std::size_t tasks : {0U, 1U, 2U, 7U, 1000U}) {
    std::vector<std::atomic<int>> runs(tasks);
    workers.run(tasks, [&](std::size_t i) { ++runs[i]; });
    for (const std::atomic<int>& each : runs) ASSERT_EQ(each, 1);
  }
}

TEST_P(Crew, HasEndedAllTasksWhenRunReturns) {
  Workers workers(GetParam());
  for (int repetition = 0; repetition < 200; ++repetition) {
    std::vector<int> squares(
        9, -1);  // written without a lock: a task that outlived run() would be a race
    workers.run(squares.size(), [&](std::size_t i) { squares[i] = static_cast<int>(i * i); });
    ASSERT_EQ(std::accumulate(squares.begin(), squares.end(), 0), 204);
  }
}

TEST_P(Crew, ThrowsWhatATaskThrowsAndGoesOnWorking) {
  Workers workers(GetParam());
  for (int repetition = 0; repetition < 20; ++repetition) {
    const auto fail_at_three = [](std::size_t i) {
      if (i == 3) throw std::runtime_error("task " + std::to_string(i));
    };
    try {
      workers.run(8, fail_at_three);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "task 3");
    }
    std::atomic<int> runs = 0;
    workers.run(8, [&](std::size_t) { ++runs; });
    ASSERT_EQ(runs, 8);
  }
}

TEST_P(Crew, ThrowsOneExceptionWhenAllTasksThrow) {
  Workers workers(GetParam());
  EXPECT_THROW(workers.run(50, [](std::size_t) { throw std::runtime_error("no"); }),
               std::runtime_error);
}

TEST_P(Crew, LeavesOutWhatHasNotBegunWhenATaskThrows) {
  Workers workers(GetParam());
  std::atomic<std::size_t> runs = 0;
  const auto fail = [&](std::size_t) {
    ++runs;
    throw std::runtime_error("no");
  };
  EXPECT_THROW(workers.run(1000, fail), std::runtime_error);
  EXPECT_LE(runs, GetParam());
}

INSTANTIATE_TEST_SUITE_P(OfSizes, Crew, testing::Values(1, 2, 3, 5));

TEST(Workers, WorkAtTheSameTime) {
  Workers workers(3);
  std::latch all_here(3);  // opens only when three tasks are running at once
  workers.run(3, [&](std::size_t) { all_here.arrive_and_wait(); });
  EXPECT_TRUE(all_here.try_wait());
}

TEST(Workers, OfOneRunInTheCallingThreadInOrder) {
  Workers workers(1);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<std::size_t> order;
  workers.run(5, [&](std::size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(Workers, AreAtLeastTheCaller) { EXPECT_THROW(Workers(0), std::logic_error); }

TEST(Workers, EndWithoutEverHavingWorked) {
  for (int i = 0; i < 20; ++i) const Workers workers(4);
}

}  // namespace
}  // namespace longhaul
