#include "longhaul/lab/results_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/lab/sample_runs.h"

namespace longhaul::lab {
namespace {

TEST(ResultsJson, HasTheKeysThatTheCommandLinePromises) {
  const auto json = results_json(sample_scenario(), {sample_run({.recipe = "d-sgd", .seed = 7})},
                                 Curves::kLeftOut);
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
  const auto json =
      results_json(sample_scenario(), {sample_run({.recipe = "d-sgd"})}, Curves::kIncluded);
  EXPECT_EQ(json.at("runs").at(0).at("evaluations").size(), 20U);
  EXPECT_EQ(json.at("runs").at(0).at("losses").size(), 200U);
}

TEST(ResultsJson, WhatIsNotThereIsNull) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.time_to_target.reset();
  run.steps_to_target.reset();
  run.final_loss.reset();
  run.final_accuracy = std::numeric_limits<double>::quiet_NaN();
  const auto json = results_json(sample_scenario(), {run}, Curves::kLeftOut).at("runs").at(0);
  for (const char* key : {"time_to_target_s", "steps_to_target", "final_loss", "final_accuracy"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
}

TEST(RunEvents, BringARunBackAsItWas) {
  const std::vector<RunResult> runs{sample_run({.recipe = "d-sgd"}),
                                    sample_run({.recipe = "dga", .step_time_s = 0.1, .best = 0.5})};
  std::stringstream text;
  EventLog log(text);
  for (const RunResult& run : runs) write_run_events(log, run);
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Scenario scenario = sample_scenario();
  EXPECT_EQ(results_json(scenario, *read, Curves::kIncluded),
            results_json(scenario, runs, Curves::kIncluded));
  ASSERT_EQ(read->size(), 2U);
  ASSERT_EQ((*read)[1].timeline.size(), runs[1].timeline.size());
  EXPECT_EQ((*read)[1].timeline[3].activity, runs[1].timeline[3].activity);
  EXPECT_EQ((*read)[1].timeline[3].end, runs[1].timeline[3].end);
}

TEST(RunEvents, LossesThatAreNotFiniteStayPointsOfTheCurve) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.losses[5].loss = std::numeric_limits<double>::infinity();
  std::stringstream text;
  EventLog log(text);
  write_run_events(log, run);
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read)[0].losses.size(), run.losses.size());
  EXPECT_FALSE(std::isfinite((*read)[0].losses[5].loss));
}

TEST(RunEvents, ARunThatDidNotFinishIsLeftOut) {
  std::stringstream text;
  EventLog log(text);
  log.write("run_started", {{"recipe", "d-sgd"}});
  log.write("step", {{"step", 1}, {"time_s", 0.5}, {"loss", 2.0}});
  write_run_events(log, sample_run({.recipe = "dga"}));
  const Result<std::vector<RunResult>> read = read_run_events(text);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ((*read)[0].losses.size(), 200U);
}

TEST(RunEvents, AnEventWithoutItsFieldsIsAnError) {
  std::stringstream text("{\"event\":\"step\"}\n");
  EXPECT_FALSE(read_run_events(text).ok());
}

}  // namespace
}  // namespace longhaul::lab
