#include "longhaul/lab/timekeeper.h"

#include <gtest/gtest.h>

#include "longhaul/lab/factors.h"
#include "longhaul/lab/replay.h"
#include "longhaul/lab/run.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::lab {
namespace {

// Sent at 1 s, 2 s on the line, there at 3.5 s; closed at 5 s; 1 s on the line, back at 6.5 s.
const RoundTrip kTrip{.sent = Seconds(1),
                      .arrived = Seconds(3.5),
                      .closed = Seconds(5),
                      .back = Seconds(6.5),
                      .latency = Seconds(0.5)};

TEST(AddWait, SplitsAWaitByWhereItsMessagesWere) {
  TimeSpent spent;
  add_wait(kTrip, Seconds(1), Seconds(6.5), spent);
  EXPECT_DOUBLE_EQ(spent.sending.count(), 3);
  EXPECT_DOUBLE_EQ(spent.latency.count(), 1);
  EXPECT_DOUBLE_EQ(spent.others.count(), 1.5);
}

TEST(AddWait, CountsOnlyThePartThatWasWaited) {
  TimeSpent spent;
  add_wait(kTrip, Seconds(4), Seconds(6.5), spent);
  EXPECT_DOUBLE_EQ(spent.sending.count(), 1);
  EXPECT_DOUBLE_EQ(spent.latency.count(), 0.5);
  EXPECT_DOUBLE_EQ(spent.others.count(), 1);
}

constexpr std::size_t kNumbers = 4000;

Scenario lab_scenario() {
  Scenario scenario;
  scenario.train.steps = 40;
  scenario.train.lr = 1e-4;
  scenario.eval.every = 1000;
  scenario.target.value = 2;
  for (const double step_time : {0.04, 0.04, 0.08}) {
    ReplicaOptions replica;
    replica.step_time = Seconds(step_time);
    replica.link = {.up = {.bytes_per_second = 1e5},
                    .down = {.bytes_per_second = 4e5},
                    .latency = Seconds(0.03)};
    scenario.replicas.push_back(replica);
  }
  return scenario;
}

RunResult timed_run(const std::string& recipe) {
  longhaul::testing::QuadraticWorkload workload(kNumbers);
  Workers workers(1);
  return run(lab_scenario(), {.recipe = recipe}, workload, workers).value();
}

TEST(Timekeeper, AccountsForAllOfTheTimeOfEveryReplica) {
  for (const char* recipe : {"d-sgd", "static:keep_ratio=0.01:delay_steps=2", "local-sgd"}) {
    const RunResult run = timed_run(recipe);
    ASSERT_EQ(run.spent.size(), 3U);
    double latest = 0;
    for (const TimeSpent& one : run.spent) latest = std::max(latest, one.total().count());
    EXPECT_NEAR(latest, run.virtual_time.count(), 1e-9) << recipe;
  }
}

// Synchronous and dense, so a step is known: 16 kB take 160 ms up and 40 ms down.
TEST(Timekeeper, KnowsTheLineTheLatencyAndTheSlowestApart) {
  const RunResult run = timed_run("d-sgd");
  const TimeSpent fast = *mean_step_of(run, 0);
  const TimeSpent slow = *mean_step_of(run, 2);
  EXPECT_NEAR(fast.computing.count(), 0.04, 1e-9);
  EXPECT_NEAR(fast.latency.count(), 0.06, 1e-9);
  EXPECT_NEAR(fast.others.count(), 0.04, 1e-9);
  EXPECT_NEAR(fast.sending.count(), 0.2, 0.01);  // payloads have a head
  EXPECT_NEAR(slow.others.count(), 0, 1e-9);
  EXPECT_NEAR(slow.latency.count(), 0.06, 1e-9);
}

// A link that is 9 % busy looks 9 % busy: latency is no part of the line's time.
TEST(Timekeeper, TimeOnTheLineIsBytesByRate) {
  const RunResult run = timed_run("static:keep_ratio=0.01:delay_steps=2");
  for (const Span& span : run.timeline) {
    if (span.activity != Activity::kSend) continue;
    const Seconds on_line = span.end - span.begin - span.queued - span.latency;
    EXPECT_NEAR(on_line.count(), run.wire[span.step].at(0).up[span.replica] / 1e5, 1e-9);
    EXPECT_DOUBLE_EQ(span.latency.count(), 0.03);
  }
  ASSERT_FALSE(run.rates.empty());
  EXPECT_NEAR(run.rates.front().up_bits_per_s, 8e5, 1);
}

TEST(Timekeeper, OfAReplayIsThatOfTheRun) {
  const RunResult run = timed_run("dd-ef-sgd:delay_steps=3");
  const RunResult again = replay(lab_scenario(), run).value();
  ASSERT_EQ(again.spent.size(), run.spent.size());
  for (std::size_t i = 0; i < run.spent.size(); ++i) {
    EXPECT_NEAR(again.spent[i].sending.count(), run.spent[i].sending.count(), 1e-9);
    EXPECT_NEAR(again.spent[i].others.count(), run.spent[i].others.count(), 1e-9);
  }
  EXPECT_EQ(again.timeline.size(), run.timeline.size());
}

}  // namespace
}  // namespace longhaul::lab
