#include "longhaul/lab/results_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "longhaul/telemetry/event_log.h"
#include "tests/lab/sample_runs.h"

namespace longhaul::lab {
namespace {

TEST(ResultsJson, HasTheKeysThatTheCommandLinePromises) {
  const auto json = results_json(sample_scenario(), {sample_run({.recipe = "d-sgd", .seed = 7})});
  EXPECT_EQ(json.at("scenario"), "sample");
  const auto& run = json.at("runs").at(0);
  for (const char* key : {"recipe",
                          "seed",
                          "replicas",
                          "parameters",
                          "steps",
                          "time_to_target_s",
                          "steps_to_target",
                          "final_loss",
                          "final_accuracy",
                          "virtual_s",
                          "efficiency",
                          "bytes_up",
                          "bytes_down",
                          "digest",
                          "lr",
                          "status",
                          "step_time_s",
                          "keep_ratio",
                          "delay_steps",
                          "merge",
                          "codec",
                          "plans"})
    EXPECT_TRUE(run.contains(key)) << key;
  EXPECT_EQ(run.at("seed"), 7);
  EXPECT_EQ(run.at("virtual_s"), 200.0);
  EXPECT_FALSE(run.contains("evaluations"));
}

TEST(ResultsJson, HasCurvesWhereAsked) {
  const auto json = results_json_with_curves(sample_scenario(), {sample_run({.recipe = "d-sgd"})});
  EXPECT_EQ(json.at("runs").at(0).at("evaluations").size(), 20U);
  EXPECT_EQ(json.at("runs").at(0).at("losses").size(), 200U);
}

TEST(ResultsJson, WhatIsNotThereIsNull) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.time_to_target.reset();
  run.steps_to_target.reset();
  run.final_loss.reset();
  run.final_accuracy = std::numeric_limits<double>::quiet_NaN();
  const auto json = results_json(sample_scenario(), {run}).at("runs").at(0);
  for (const char* key : {"time_to_target_s", "steps_to_target", "final_loss", "final_accuracy"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
}

TEST(ResultsJson, TellsWhereTheTimeWent) {
  const auto json = results_json(sample_scenario(), {sample_run({.recipe = "d-sgd"})});
  EXPECT_EQ(json.at("clock"), "virtual");
  const auto& run = json.at("runs").at(0);
  EXPECT_NEAR(run.at("computing"), 0.0375, 1e-9);  // three replicas of 0.03 s, one of 0.06 s
  EXPECT_NEAR(run.at("computing_s"), 0.0375, 1e-9);
  EXPECT_EQ(run.at("time_by_replica").size(), 4U);
}

TEST(ResultsJson, TellsTheScheduleByNameAndWhatWasHidden) {
  RunResult run = sample_run({.recipe = "dreamddp"});
  add_sample_layers(run);
  const auto json = results_json(sample_scenario(), {run}).at("runs").at(0);
  EXPECT_EQ(json.at("schedule_names").dump(), R"([["out","conv/1"],["conv/2"]])");
  EXPECT_NEAR(json.at("hidden_share"), 0.75, 1e-9);
  EXPECT_NEAR(json.at("exposed_s"), 0.05, 1e-9);
  EXPECT_EQ(json.at("planned_hidden_share"), 0.8);
  EXPECT_EQ(json.at("planned_exposed_s"), 0.04);
  const auto other = results_json(sample_scenario(), {sample_run({.recipe = "d-sgd"})});
  EXPECT_TRUE(other.at("runs").at(0).at("schedule_names").empty());
  EXPECT_TRUE(other.at("runs").at(0).at("planned_hidden_share").is_null());
}

TEST(ResultsCsv, HasARowPerRunAndTheKeysOfTheJson) {
  RunResult odd = sample_run({.recipe = "a,\"b\""});
  odd.time_to_target.reset();
  const std::string csv = results_csv(sample_scenario(), {sample_run({.recipe = "d-sgd"}), odd});
  std::istringstream lines(csv);
  std::string head;
  std::string first;
  std::string second;
  std::string rest;
  std::getline(lines, head);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_FALSE(std::getline(lines, rest));
  EXPECT_TRUE(head.starts_with("scenario,clock,recipe,settings,seed,status,")) << head;
  EXPECT_NE(head.find(",time_to_target_s,"), std::string::npos);
  EXPECT_NE(head.find(",computing_s,sending_s,latency_s,others_s"), std::string::npos);
  EXPECT_EQ(head.find("plans"), std::string::npos);
  EXPECT_TRUE(first.starts_with("sample,virtual,d-sgd,,1,done,")) << first;
  EXPECT_EQ(std::ranges::count(head, ','), std::ranges::count(first, ','));
  EXPECT_TRUE(second.starts_with("sample,virtual,\"a,\"\"b\"\"\",,1,done,")) << second;
  EXPECT_NE(second.find(",200,,"), std::string::npos) << second;  // what is null is empty
}

TEST(RunEvents, BringARunBackAsItWas) {
  std::vector<RunResult> runs{sample_run({.recipe = "d-sgd"}),
                              sample_run({.recipe = "dga", .step_time_s = 0.1, .best = 0.5})};
  add_sample_layers(runs[1]);
  std::stringstream text;
  for (const RunResult& run : runs) write_run_events(text, run);
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Scenario scenario = sample_scenario();
  EXPECT_EQ(results_json_with_curves(scenario, *read), results_json_with_curves(scenario, runs));
  ASSERT_EQ(read->size(), 2U);
  ASSERT_EQ((*read)[1].timeline.size(), runs[1].timeline.size());
  EXPECT_EQ((*read)[1].timeline[3].activity, runs[1].timeline[3].activity);
  EXPECT_EQ((*read)[1].timeline[3].end, runs[1].timeline[3].end);
  EXPECT_EQ((*read)[1].timeline[1].latency, runs[1].timeline[1].latency);
  EXPECT_EQ((*read)[1].spent[3].others, runs[1].spent[3].others);
  EXPECT_EQ((*read)[1].timeline.back().part, runs[1].timeline.back().part);
}

// Steps without a round, with one of each part, and with both.
TEST(RunEvents, BringTheBytesOfEachRoundBack) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.wire.assign(run.losses.size(), {});
  const auto wire_of = [](double bytes) {
    return RoundWire{.up = {bytes, 1}, .down = {2, 3}, .up_line_s = {4, 5}, .down_line_s = {6, 7}};
  };
  run.wire[1][0] = wire_of(10);
  run.wire[2][1] = wire_of(20);
  run.wire[3][0] = wire_of(30);
  run.wire[3][1] = wire_of(40);
  std::stringstream text;
  write_run_events(text, run);
  EXPECT_THAT(text.str(), ::testing::HasSubstr("\"bytes_up\":[70.0,2.0]")) << "the sum of a step";
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const std::vector<StepWire>& wire = (*read)[0].wire;
  ASSERT_EQ(wire.size(), run.wire.size());
  for (std::size_t step = 0; step < wire.size(); ++step) {
    ASSERT_EQ(wire[step].size(), run.wire[step].size()) << step;
    for (const auto& [part, one] : run.wire[step]) {
      ASSERT_TRUE(wire[step].contains(part)) << step;
      EXPECT_EQ(wire[step].at(part).up, one.up);
      EXPECT_EQ(wire[step].at(part).down_line_s, one.down_line_s);
    }
  }
}

TEST(RunEvents, LossesThatAreNotFiniteStayPointsOfTheCurve) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.losses[5].loss = std::numeric_limits<double>::infinity();
  std::stringstream text;
  write_run_events(text, run);
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read)[0].losses.size(), run.losses.size());
  EXPECT_FALSE(std::isfinite((*read)[0].losses[5].loss));
}

TEST(RunEvents, ARunThatDidNotFinishIsLeftOut) {
  std::stringstream text;
  write_event(text, "run_started", {{"recipe", "d-sgd"}});
  write_event(text, "step", {{"step", 1}, {"time_s", 0.5}, {"loss", 2.0}});
  write_run_events(text, sample_run({.recipe = "dga"}));
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ((*read)[0].losses.size(), 200U);
}

TEST(RunEvents, KeepThePlansOfARun) {
  RunResult run = sample_run({.recipe = "auto"});
  run.plan = {.keep_ratio = 0.02, .delay_steps = 6, .period_steps = 3, .merge = Merge::kLate};
  run.plans = {{.step = 4, .plan = run.plan, .reason = "the least time"}};
  std::stringstream text;
  write_run_events(text, run);
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read)[0].plan, run.plan);
  ASSERT_EQ((*read)[0].plans.size(), 1U);
  EXPECT_EQ((*read)[0].plans[0].plan, run.plan);
}

TEST(RunEvents, APlanBeyondTheLimitsIsAnError) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.plan.delay_steps = kMostDelaySteps + 1;
  std::stringstream text;
  write_run_events(text, run);
  EXPECT_EQ(read_run_events(text).error().message, "plan: delay_steps 10001: expected 0 to 10000");
}

TEST(RunEvents, AnEventWithoutItsFieldsIsAnError) {
  std::stringstream text("{\"event\":\"step\"}\n");
  EXPECT_FALSE(read_run_events(text).ok());
}

}  // namespace
}  // namespace longhaul::lab
