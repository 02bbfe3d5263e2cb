// A plan in each of its forms, and the limits that all of them share.
#include "longhaul/round/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "longhaul/base/state.h"
#include "tests/round/random_plan.h"

namespace longhaul {
namespace {

std::string refusal_of(const Plan& plan) {
  const Status status = check_plan_limits(plan);
  return status.ok() ? "accepted" : status.error().message;
}

TEST(PlanLimits, TakeAPlanAtEachLimit) {
  EXPECT_EQ(refusal_of({}), "accepted");
  EXPECT_EQ(refusal_of({.keep_ratio = 1e-9}), "accepted");
  EXPECT_EQ(refusal_of({.delay_steps = kMostDelaySteps}), "accepted");
  EXPECT_EQ(refusal_of({.period_steps = kMostPeriodSteps, .merge = Merge::kLate}), "accepted");
}

TEST(PlanLimits, RefuseAPlanBeyondEachLimit) {
  for (const double ratio : {0.0, -0.1, 1.0000001, std::nan("1"), 2.0})
    EXPECT_EQ(refusal_of({.keep_ratio = ratio}), "keep_ratio outside (0, 1]") << ratio;
  EXPECT_EQ(refusal_of({.delay_steps = -1}), "delay_steps -1: expected 0 to 10000");
  EXPECT_EQ(refusal_of({.delay_steps = kMostDelaySteps + 1}),
            "delay_steps 10001: expected 0 to 10000");
  EXPECT_EQ(refusal_of({.period_steps = 0, .merge = Merge::kLate}),
            "period_steps 0: expected 1 to 10000");
  EXPECT_EQ(refusal_of({.period_steps = kMostPeriodSteps + 1, .merge = Merge::kLate}),
            "period_steps 10001: expected 1 to 10000");
}

TEST(PlanLimits, RefuseAPeriodWithoutLocalSteps) {
  EXPECT_EQ(refusal_of({.period_steps = 2}),
            "period_steps above 1 needs local steps, which merge = optimizer has not");
}

TEST(PlanLimits, AskForARatioOfEachReplicaOrNone) {
  const Plan plan{.keep_ratios = {0.5, 0.25, 1}};
  EXPECT_TRUE(check_plan_limits(plan, 3).ok());
  EXPECT_TRUE(check_plan_limits(Plan{}, 3).ok());
  EXPECT_EQ(check_plan_limits(plan, 4).error().message, "keep_ratios of 3 replicas: expected 4");
  EXPECT_EQ(check_plan_limits(plan, 2).error().message, "keep_ratios of 3 replicas: expected 2");
}

TEST(PlanLimits, AskForAScheduleOfThePeriod) {
  const auto refusal = [](std::vector<std::vector<std::uint32_t>> schedule) {
    return refusal_of({.period_steps = 3, .merge = Merge::kLate, .schedule = std::move(schedule)});
  };
  EXPECT_EQ(refusal({{0, 2}, {}, {0, 1}}), "accepted");
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({{0}, {1}}), "schedule of 2 steps: expected period_steps, 3");
  const std::string order = "schedule: the parts of a step are not in ascending order";
  EXPECT_EQ(refusal({{1, 0}, {}, {2}}), order);
  EXPECT_EQ(refusal({{0, 1, 1}, {}, {2}}), order);
  EXPECT_EQ(refusal({{0, 1}, {2}, {}}), "schedule: no round in the last step of the period");
  std::vector<std::uint32_t> many(kMostScheduledRounds);
  std::iota(many.begin(), many.end(), 0U);
  EXPECT_EQ(refusal({{}, {}, many}), "accepted");
  EXPECT_EQ(refusal({{0}, {}, many}), "schedule of 10001 rounds: expected at most 10000");
}

// Of a checkpoint: the plan, that of the present period and the next one.
TEST(PlanLimits, LetThreeOfTheLongestPlansIntoTheHeaderOfACheckpoint) {
  State state;
  Plan plan{.period_steps = kMostPeriodSteps,
            .merge = Merge::kLate,
            .keep_ratios = std::vector<double>(kMostKeepRatios, 1.0 / 3)};
  for (std::uint32_t part = 0; part < kMostScheduledRounds; ++part) plan.schedule.push_back({part});
  save_plan("plan", plan, state);
  save_plan("next_plan", plan, state);
  EXPECT_EQ(load_plan("plan", state_from_bytes(to_bytes(state)).value()).value(), plan);
  plan.keep_ratios.clear();
  save_plan("period_plan", plan, state);
  EXPECT_EQ(load_plan("period_plan", state_from_bytes(to_bytes(state)).value()).value(), plan);
}

using Rounds = std::vector<std::vector<std::uint32_t>>;  // parts by step

Rounds rounds_of(const Plan& plan, std::size_t parts) {
  Rounds rounds;
  for (std::size_t step = 0; step < static_cast<std::size_t>(plan.period_steps); ++step)
    rounds.push_back(parts_in_step(plan, parts, step));
  return rounds;
}

TEST(PartsInStep, AreSpreadEvenlyWhereThereIsNoSchedule) {
  const auto even = [](int period, std::size_t parts) {
    return rounds_of({.period_steps = period, .merge = Merge::kLate}, parts);
  };
  EXPECT_EQ(even(1, 1), (Rounds{{0}}));
  EXPECT_EQ(even(3, 1), (Rounds{{}, {}, {0}}));
  EXPECT_EQ(even(6, 3), (Rounds{{}, {0}, {}, {1}, {}, {2}}));
  EXPECT_EQ(even(2, 5), (Rounds{{0, 1, 2, 3}, {4}})) << "(i + 1) · 2 ÷ 5, rounded down";
  EXPECT_EQ(even(1, 3), (Rounds{{0, 1, 2}}));
}

TEST(PartsInStep, AreWhatTheScheduleSays) {
  const Rounds schedule{{1}, {}, {0, 1, 2}};
  EXPECT_EQ(rounds_of({.period_steps = 3, .merge = Merge::kLate, .schedule = schedule}, 3),
            schedule);
}

TEST(Plan, HasARatioForEachSlot) {
  const Plan plan{.keep_ratio = 0.1, .keep_ratios = {0.5, 0.25}};
  EXPECT_EQ(plan.keep_ratio_of(1), 0.25);
  EXPECT_EQ(Plan{.keep_ratio = 0.1}.keep_ratio_of(7), 0.1);
}

using Json = nlohmann::ordered_json;

std::string refusal_of(const Result<Plan>& plan) {
  return plan.ok() ? "accepted" : plan.error().message;
}

Result<Plan> read_back(const Json& object) { return plan_from_json(Json::parse(object.dump())); }

// A checkpoint's plan with some of its values changed.
Result<Plan> loaded_with(const std::string& key, const nlohmann::json& value) {
  State state;
  save_plan("plan", Plan{.merge = Merge::kLate}, state);
  state.values["plan." + key] = value;
  return load_plan("plan", state_from_bytes(to_bytes(state)).value());
}

TEST(PlanForms, ReadWhatWasWritten) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const Plan plan = random_plan(random);
    ASSERT_TRUE(check_plan_limits(plan).ok()) << plan_text(plan);
    ASSERT_EQ(read_back(plan_json(plan)).value(), plan) << plan_text(plan);
    State state;
    save_plan("next_plan", plan, state);
    const State again = state_from_bytes(to_bytes(state)).value();
    ASSERT_EQ(load_plan("next_plan", again).value(), plan) << plan_text(plan);
  }
}

// Each is just beyond a limit, in the words of JSON.
const std::vector<std::pair<std::string, Json>> kBeyond{
    {"keep_ratio", 0.0},
    {"keep_ratio", 1.0000001},
    {"delay_steps", -1},
    {"delay_steps", kMostDelaySteps + 1},
    {"delay_steps", std::uint64_t{1} << 32U},
    {"delay_steps", -(std::int64_t{1} << 32U)},
    {"period_steps", 0},
    {"period_steps", kMostPeriodSteps + 1},
    {"merge", "optimiser"},
    {"keep_ratios", {0.5, 0.0}},
    {"keep_ratios", {1.0000001, 0.5}},
    {"keep_ratios", {0.5, "0.5"}},
    {"keep_ratios", 0.5},
    {"keep_ratios", std::vector<double>(kMostKeepRatios + 1, 0.5)},
    {"schedule", Json::array({{0}, {0}})},
    {"schedule", Json::array({Json::array()})},
    {"schedule", Json::array({Json::array({-1})})},
    {"schedule", Json::array({Json::array({0.5})})},
    {"schedule", Json::array({Json::array({std::uint64_t{1} << 32U})})},
    {"schedule", Json::array({0})},
};

TEST(PlanForms, RefuseAPlanJustBeyondALimit) {
  for (const auto& [key, value] : kBeyond) {
    Json object = plan_json({.merge = Merge::kLate});
    object[key] = value;
    EXPECT_FALSE(read_back(object).ok()) << object;
    EXPECT_FALSE(loaded_with(key, value).ok()) << object;
  }
  EXPECT_EQ(refusal_of(loaded_with("period_steps", 10'001)),
            "plan: period_steps 10001: expected 1 to 10000");
}

TEST(PlanForms, RefuseValuesOfAnotherKind) {
  const Json knobs = plan_json({});
  for (const auto& [key, value] : knobs.items()) {
    Json object = knobs;
    object[key] = nullptr;
    EXPECT_EQ(refusal_of(read_back(object)), "plan: no value of the right kind \"" + key + '"');
    EXPECT_EQ(refusal_of(loaded_with(key, nullptr)),
              "plan: no value of the right kind \"plan." + key + '"');
  }
}

TEST(PlanJson, HasTheKeysThatOtherProgramsRead) {
  EXPECT_EQ(
      plan_json({.keep_ratio = 0.05, .delay_steps = 3, .period_steps = 4, .merge = Merge::kLate})
          .dump(),
      R"({"keep_ratio":0.05,"delay_steps":3,"period_steps":4,"merge":"late",)"
      R"("keep_ratios":[],"schedule":[]})");
  EXPECT_EQ(plan_json({.keep_ratios = {0.5, 0.25}}).at("keep_ratios").dump(), "[0.5,0.25]");
  EXPECT_EQ(plan_json({.schedule = {{1}, {}, {0, 1}}}).at("schedule").dump(), "[[1],[],[0,1]]");
}

TEST(PlanJson, IsReadAmongOtherKeys) {
  Json event{{"event", "plan"}, {"colour", "blue"}};
  event.update(plan_json({.delay_steps = 2}));
  EXPECT_EQ(read_back(event).value(), Plan{.delay_steps = 2});
  event.erase("merge");
  EXPECT_EQ(refusal_of(read_back(event)), "plan: no value \"merge\"");
  EXPECT_FALSE(read_back(Json::array()).ok());
}

TEST(PlanJson, OfAnOlderProgramHasNoPeriodNoRatiosByReplicaAndNoSchedule) {
  Json object = plan_json({.delay_steps = 2});
  object.erase("period_steps");
  object.erase("keep_ratios");
  object.erase("schedule");
  EXPECT_EQ(read_back(object).value(), Plan{.delay_steps = 2});
}

TEST(PlanInAState, HasAllOfItsValues) {
  const Json knobs = plan_json({});
  for (const auto& [key, value] : knobs.items()) {
    State state;
    save_plan("plan", Plan{}, state);
    state.values.erase("plan." + key);
    EXPECT_EQ(refusal_of(load_plan("plan", state)), "no value \"plan." + key + '"');
  }
}

TEST(PlanText, IsOneLine) {
  EXPECT_EQ(
      plan_text(
          {.keep_ratio = 1.0 / 64, .delay_steps = 3, .period_steps = 4, .merge = Merge::kLate}),
      "keep ratio 0.01562, delay 3, period 4, merge late");
}

TEST(PlanText, TellsTheRangeOfRatiosThatDiffer) {
  EXPECT_EQ(plan_cells({.keep_ratios = {0.05, 0.02, 0.08}}).at(0).value, "0.02 to 0.08");
  EXPECT_EQ(plan_cells({.keep_ratios = {0.02, 0.02}}).at(0).value, "0.02");
}

TEST(PlanText, CountsTheRoundsOfASchedule) {
  const Plan plan{.period_steps = 2, .merge = Merge::kLate, .schedule = {{0, 1}, {1}}};
  EXPECT_EQ(plan_text(plan), "keep ratio 1, delay 0, period 2, merge late in 3 scheduled rounds");
}

TEST(PlanText, CountsStepsInCells) {
  const std::vector<PlanCell> cells = plan_cells({.delay_steps = 3});
  EXPECT_EQ(cells.at(1).symbol + ' ' + cells.at(1).value + ' ' + cells.at(1).unit, "τ 3 steps");
  EXPECT_EQ(cells.at(2).symbol + ' ' + cells.at(2).value + ' ' + cells.at(2).unit, "H 1 step");
}

}  // namespace
}  // namespace longhaul
