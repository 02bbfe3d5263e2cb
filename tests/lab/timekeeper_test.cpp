#include "longhaul/lab/timekeeper.h"

#include <gtest/gtest.h>

#include <algorithm>

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

RunResult timed_run(const std::string& recipe, const Scenario& scenario = lab_scenario()) {
  longhaul::testing::QuadraticWorkload workload(kNumbers);
  Workers workers(1);
  return run(scenario, {.recipe = recipe}, workload, workers).value();
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

// Two rounds that are on their way at once, and a pause: 1 to 4 s, 3 to 6 s, 8 to 9 s.
TEST(Timekeeper, CountsTimeWithSeveralRoundsOnTheirWayOnce) {
  RunResult run;
  Timekeeper keeper(run, {Seconds(0)});
  const auto round = [&](std::uint64_t step, double sent, double back) {
    for (const bool is_up : {true, false})
      keeper.transferred({.is_up = is_up,
                          .round = {.step = step},
                          .begin = Seconds(is_up ? sent : back - 0.5),
                          .end = Seconds(is_up ? sent + 0.5 : back)});
  };
  round(0, 1, 4);
  round(1, 3, 6);
  round(2, 8, 9);
  keeper.waited(0, 0, Seconds(3.5), Seconds(4));
  EXPECT_DOUBLE_EQ(run.spent[0].communicating.count(), 3);
  keeper.waited(2, 0, Seconds(9), Seconds(9));
  EXPECT_DOUBLE_EQ(run.spent[0].communicating.count(), 6);
  run.steps = 1;
  EXPECT_DOUBLE_EQ(*hidden_share(run), 1 - 0.5 / 6);
}

TEST(Timekeeper, HidesNothingInSynchronousStepsAndAllBehindADelay) {
  Scenario scenario = lab_scenario();
  for (ReplicaOptions& replica : scenario.replicas) replica.step_time = Seconds(0.04);
  EXPECT_NEAR(*hidden_share(timed_run("local-sgd", scenario)), 0, 1e-9);
  EXPECT_NEAR(*hidden_share(timed_run("static:keep_ratio=0.01:delay_steps=3", scenario)), 1, 1e-9);
}

// Four layers whose dense update takes about as long as a period computes.
Scenario layered_scenario() {
  Scenario scenario = lab_scenario();
  scenario.train.steps = 400;
  for (const char* name : {"a", "b", "c", "d"})
    scenario.times.layers.push_back({.name = name, .forward = Seconds(1), .backward = Seconds(2)});
  for (ReplicaOptions& replica : scenario.replicas) {
    replica.step_time = Seconds(0.06);
    replica.link.latency = Seconds(0.002);
  }
  return scenario;
}

TEST(Timekeeper, MeasuresTheHiddenShareThatTheScheduleWasPlannedFor) {
  LayerTable layers;
  for (const char* name : {"a.w", "b.w", "c.w", "d.w"})
    layers.push_back({.name = name, .offset = layers.size() * kNumbers, .count = kNumbers});
  for (const char* recipe : {"wfbp", "local-sgd-parts", "plsgd-enp", "dreamddp"}) {
    longhaul::testing::QuadraticWorkload workload(layers);
    Workers workers(1);
    const RunResult run =
        lab::run(layered_scenario(), {.recipe = recipe}, workload, workers).value();
    ASSERT_EQ(run.part_names.size(), 16U) << "pieces of a sixteenth";
    EXPECT_NEAR(*hidden_share(run), *run.planned_hidden_share, 0.01) << recipe;
    EXPECT_NEAR(exposed(run)->count(), run.planned_exposed->count(),
                0.02 * run.planned_exposed->count() + 1e-6)
        << recipe;
  }
}

// `auto` may go by layer, and does not where dense layers are too much for the link.
TEST(Timekeeper, HasNoPartsWhereThePlanIsNotByLayer) {
  Scenario scenario = layered_scenario();
  for (ReplicaOptions& replica : scenario.replicas) replica.link.up = {.bytes_per_second = 2e4};
  LayerTable layers;
  for (const char* name : {"a.w", "b.w", "c.w", "d.w"})
    layers.push_back({.name = name, .offset = layers.size() * kNumbers, .count = kNumbers});
  longhaul::testing::QuadraticWorkload workload(layers);
  Workers workers(1);
  const RunResult run = lab::run(scenario, {.recipe = "auto"}, workload, workers).value();
  ASSERT_TRUE(run.plan.schedule.empty());
  EXPECT_TRUE(run.part_names.empty());
  EXPECT_FALSE(run.planned_hidden_share);
}

// The part that a replica waits for is that of the mean that ends the wait.
TEST(Timekeeper, TellsThePartOfEachWait) {
  LayerTable layers;
  for (const char* name : {"a.w", "b.w", "c.w", "d.w"})
    layers.push_back({.name = name, .offset = layers.size() * kNumbers, .count = kNumbers});
  longhaul::testing::QuadraticWorkload workload(layers);
  Workers workers(1);
  const RunResult run = lab::run(layered_scenario(), {.recipe = "wfbp"}, workload, workers).value();
  std::size_t waits = 0;
  for (const Span& wait : run.timeline) {
    if (wait.activity != Activity::kWait) continue;
    ++waits;
    EXPECT_TRUE(std::ranges::any_of(run.timeline, [&](const Span& mean) {
      return mean.activity == Activity::kReceive && mean.replica == wait.replica &&
             mean.part == wait.part && mean.end == wait.end;
    })) << wait.part;
  }
  EXPECT_GT(waits, 20U);
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
