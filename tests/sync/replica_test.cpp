// A replica of a run without a hub: steps in two halves, and a state that is replaced.
#include "longhaul/sync/replica.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/exchange/simulated.h"
#include "tests/base/fake_clock.h"
#include "tests/sync/cluster.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul {
namespace {

constexpr std::size_t kReplicaElements = 300;
constexpr std::uint64_t kLastStep = 20;

// Takes part until the last step, and notes what it is told.
class NotingMember final : public Membership {
 public:
  Result<std::optional<Plan>> first_plan(Deadline /*deadline*/) override { return plan; }
  Result<Stance> stance(std::uint64_t step, RoundId /*round*/, Deadline /*deadline*/) override {
    if (snapshot) return Stance::kRestart;
    return step > kLastStep ? Stance::kFinish : Stance::kTakePart;
  }
  State take_snapshot() override { return *std::exchange(snapshot, std::nullopt); }
  [[nodiscard]] std::size_t updates_in_flight() const override { return 7; }
  Status await(RoundId /*round*/, Deadline /*deadline*/) override { return Done{}; }
  void report(const StepReport& report) override { reports.push_back(report); }
  void save(State& checkpoint) const override { checkpoint.values["member"] = std::uint64_t{3}; }

  std::optional<Plan> plan;
  std::optional<State> snapshot;
  std::vector<StepReport> reports;
};

// Loses the mean of one step: the state is replaced while the replica waits for it.
class LosingExchange final : public Exchange {
 public:
  explicit LosingExchange(Exchange& inner) : inner_(inner) {}
  void submit(Update update) override { inner_.submit(std::move(update)); }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    if (loses_next) return Error{ErrorCode::kMismatch, "the state was replaced"};
    return inner_.collect(round, deadline);
  }
  bool loses_next = false;

 private:
  Exchange& inner_;
};

EngineOptions replica_options() {
  EngineOptions options{.recipe = find_recipe("static").value(),
                        .lr = {.peak = 0.05, .steps = kLastStep + 1},
                        .layers = {{.name = "all", .count = kReplicaElements}},
                        .replicas = 2};
  options.recipe.plan.delay_steps = 2;
  return options;
}

struct Pair {
  struct One {
    One(testing::QuadraticWorkload& workload, std::size_t slot, SimulatedNetwork& network)
        : learner(workload.make_learner(slot)),
          exchange(network.exchange(slot)),
          replica({.engine = replica_options(), .workers = workers, .clock = clock}, *learner,
                  member, exchange) {
      member.plan = replica_options().recipe.plan;
    }
    FakeClock clock;
    Workers workers{1};
    std::unique_ptr<Learner> learner;
    NotingMember member;
    LosingExchange exchange;
    Replica replica;
  };
  Pair() {
    for (std::size_t i = 0; i < 2; ++i) {
      one[i] = std::make_unique<One>(workload, i, network);
      EXPECT_TRUE(one[i]->replica.start(Deadline::max()).ok());
    }
  }
  // False: the run is over.
  [[nodiscard]] bool begin() {
    bool is_going_on = true;
    for (const auto& each : one) {
      const Result<Stance> stance = each->replica.begin_step(Deadline::max());
      EXPECT_TRUE(stance.ok());
      is_going_on = is_going_on && *stance == Stance::kTakePart;
    }
    EXPECT_TRUE(network.settle().ok());
    return is_going_on;
  }
  void end() {
    for (const auto& each : one) EXPECT_TRUE(each->replica.end_step(Deadline::max()).ok());
  }

  testing::QuadraticWorkload workload{kReplicaElements};
  Workers workers{1};
  SimulatedNetwork network{{{.link = testing::test_link()}, {.link = testing::test_link()}},
                           workers};
  std::array<std::unique_ptr<One>, 2> one;
};

TEST(Replica, TwoOfOneProcessGoThroughTheirStepsTogether) {
  Pair pair;
  while (pair.begin()) pair.end();
  for (const auto& each : pair.one) {
    EXPECT_EQ(each->replica.engine().steps_done(), kLastStep + 1);
    EXPECT_TRUE(each->replica.finish(Deadline::max()).ok());
  }
  EXPECT_EQ(digest_of(pair.one[0]->replica.engine().shared()),
            digest_of(pair.one[1]->replica.engine().shared()));
}

TEST(Replica, BeginsAStepOnceHoweverOftenItIsAsked) {
  Pair pair;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pair.begin());
  pair.end();
  EXPECT_EQ(pair.one[0]->replica.engine().steps_done(), 1U);
  EXPECT_EQ(pair.one[0]->replica.engine().rounds_in_flight(), 1U);
}

// The forward pass of a step by layer ends the step before. So a change of parts must not make a
// replica pay for it twice.
TEST(Replica, WorksForAStepTimeInEachStepWhateverItsParts) {
  constexpr Seconds kStepTime{0.1};
  EngineOptions options = replica_options();
  options.recipe.may_go_by_layer = true;
  Plan by_layer{.merge = Merge::kLate, .schedule = {{}}};
  for (std::uint32_t part = 0; part < part_times(options).layers.size(); ++part)
    by_layer.schedule.back().push_back(part);
  const Plan whole{.delay_steps = 2, .merge = Merge::kLate};
  testing::QuadraticWorkload workload(kReplicaElements);
  Workers workers(1);
  SimulatedNetwork network({{.link = testing::test_link(1e15, Seconds(0))}}, workers);
  network.plan_with([&](const ClosedRound& round) {
    return std::optional(round.id.step / 5 % 2 == 0 ? by_layer : whole);
  });
  const std::unique_ptr<Learner> learner = workload.make_learner(0);
  NotingMember member;
  member.plan = whole;
  FakeClock clock;
  Replica replica({.engine = options,
                   .workers = workers,
                   .clock = clock,
                   .step_time = kStepTime,
                   .advance = [&](Seconds time) { network.advance(0, time); }},
                  *learner, member, network.exchange(0));
  ASSERT_TRUE(replica.start(Deadline::max()).ok());
  std::size_t changes = 0;
  std::size_t parts = 1;
  while (*replica.begin_step(Deadline::max()) == Stance::kTakePart) {
    if (std::exchange(parts, replica.engine().parts()) != replica.engine().parts()) ++changes;
    ASSERT_TRUE(network.settle().ok());
    ASSERT_TRUE(replica.end_step(Deadline::max()).ok());
  }
  EXPECT_GE(changes, 3U);
  EXPECT_NEAR(network.now(0).count(), (kLastStep + 1) * kStepTime.count(), 1e-9);
  EXPECT_TRUE(replica.finish(Deadline::max()).ok());
}

TEST(Replica, ReportsEachStepAndADigestInSome) {
  Pair pair;
  while (pair.begin()) pair.end();
  const std::vector<StepReport>& reports = pair.one[0]->member.reports;
  ASSERT_EQ(reports.size(), kLastStep + 1);
  for (const StepReport& report : reports) {
    EXPECT_EQ(report.passes, 1U);
    EXPECT_EQ(report.digest.has_value(), report.step % kDigestEvery == 0) << report.step;
  }
  EXPECT_EQ(reports.back().step, kLastStep + 1);
}

TEST(Replica, GoesOnFromTheStateThatReplacesItsOwn) {
  Pair pair;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pair.begin());
    pair.end();
  }
  ASSERT_TRUE(pair.begin());
  Pair::One& lost = *pair.one[0];
  Pair::One& other = *pair.one[1];
  ASSERT_TRUE(other.replica.end_step(Deadline::max()).ok());
  lost.exchange.loses_next = true;
  lost.member.snapshot = other.replica.engine().save_shared();
  EXPECT_EQ(lost.replica.end_step(Deadline::max())->stance, Stance::kRestart);
  EXPECT_EQ(lost.replica.restarts(), 1U);
  EXPECT_EQ(lost.replica.engine().steps_done(), other.replica.engine().steps_done());
  EXPECT_EQ(digest_of(lost.replica.engine().shared()), digest_of(other.replica.engine().shared()));
  lost.exchange.loses_next = false;
  ASSERT_TRUE(pair.begin());
  const Result<StepFacts> facts = lost.replica.end_step(Deadline::max());
  ASSERT_TRUE(facts.ok() && facts->replaced);
  EXPECT_EQ(facts->replaced->from_step, 5U);
  EXPECT_EQ(facts->replaced->to_step, 6U);
  EXPECT_EQ(facts->replaced->updates, 7U) << "as the membership counts them";
}

TEST(Replica, TellsOfEachRoundThatItMerged) {
  Pair pair;
  for (std::uint64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(pair.begin());
    pair.one[0]->clock.advance(Seconds(1));
    const StepFacts facts = pair.one[0]->replica.end_step(Deadline::max()).value();
    ASSERT_TRUE(pair.one[1]->replica.end_step(Deadline::max()).ok());
    ASSERT_EQ(facts.merged.size(), step < 2 ? 0U : 1U);
    if (step < 2) continue;
    const MergedRound& one = facts.merged.front();
    EXPECT_EQ(one.round, (RoundId{.step = step - 2}));
    ASSERT_TRUE(one.sent);
    EXPECT_EQ(one.merged - *one.sent, Seconds(3)) << "sent, and merged two steps later";
    EXPECT_EQ(one.waited, Seconds(0)) << "this clock stands still";
  }
}

TEST(Replica, ACheckpointHasThePartOfTheMembership) {
  Pair pair;
  ASSERT_TRUE(pair.begin());
  pair.end();
  const State saved = pair.one[0]->replica.save();
  EXPECT_EQ(saved.value<std::uint64_t>("member").value(), 3U);
  EXPECT_EQ(saved.value<std::vector<std::uint64_t>>("next_round").value(),
            (std::vector<std::uint64_t>{0, 0}));
  EXPECT_TRUE(pair.one[0]->replica.resume(saved).ok());
  EXPECT_EQ(pair.one[0]->replica.engine().steps_done(), 1U);
}

}  // namespace
}  // namespace longhaul
