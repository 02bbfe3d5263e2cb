#include "longhaul/lab/results_json.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace longhaul::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kActivities{"compute", "send", "receive", "wait"};

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_same_v<T, Seconds>) {
    return value->count();
  } else if constexpr (std::is_same_v<T, double>) {
    return finite_or_null(*value);
  } else {
    return Json(*value);
  }
}

double number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

template <typename T>
std::optional<T> maybe(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (value.is_null()) return std::nullopt;
  if constexpr (std::is_same_v<T, Seconds>)
    return Seconds(value.get<double>());
  else
    return value.get<T>();
}

Json run_json(const RunResult& run) {
  return {{"recipe", run.recipe},
          {"settings", run.settings},
          {"seed", run.seed},
          {"status", run.status},
          {"lr", run.lr},
          {"replicas", run.replicas},
          {"parameters", run.parameters},
          {"steps", run.steps},
          {"time_to_target_s", value_or_null(run.time_to_target)},
          {"steps_to_target", value_or_null(run.steps_to_target)},
          {"final_loss", value_or_null(run.final_loss)},
          {"final_accuracy", value_or_null(run.final_accuracy)},
          {"virtual_s", run.virtual_time.count()},
          {"step_time_s", finite_or_null(run.step_time.count())},
          {"efficiency", finite_or_null(run.efficiency)},
          {"bytes_up", run.bytes_up},
          {"bytes_down", run.bytes_down},
          {"keep_ratio", run.keep_ratio},
          {"delay_steps", run.delay_steps},
          {"period_steps", run.period_steps},
          {"merge", run.merge},
          {"codec", run.codec},
          {"non_finite_steps", run.non_finite_steps},
          {"predicted_step_time_s", value_or_null(run.predicted_step_time)},
          {"late_steps", run.late_steps},
          {"digest", run.digest}};
}

RunResult run_from_json(const Json& json) {
  RunResult run;
  run.recipe = json.at("recipe");
  run.settings = json.at("settings");
  run.seed = json.at("seed");
  run.status = json.at("status");
  run.lr = json.at("lr");
  run.replicas = json.at("replicas");
  run.parameters = json.at("parameters");
  run.steps = json.at("steps");
  run.time_to_target = maybe<Seconds>(json, "time_to_target_s");
  run.steps_to_target = maybe<std::size_t>(json, "steps_to_target");
  run.final_loss = maybe<double>(json, "final_loss");
  run.final_accuracy = maybe<double>(json, "final_accuracy");
  run.virtual_time = Seconds(number(json, "virtual_s"));
  run.step_time = Seconds(number(json, "step_time_s"));
  run.efficiency = number(json, "efficiency");
  run.bytes_up = json.at("bytes_up");
  run.bytes_down = json.at("bytes_down");
  run.keep_ratio = json.at("keep_ratio");
  run.delay_steps = json.at("delay_steps");
  run.period_steps = json.value("period_steps", 1);  // logs of older programs do not have it
  run.merge = json.at("merge");
  run.codec = json.at("codec");
  run.non_finite_steps = json.at("non_finite_steps");
  run.predicted_step_time = maybe<Seconds>(json, "predicted_step_time_s");
  run.late_steps = json.at("late_steps");
  run.digest = json.at("digest");
  return run;
}

Json step_json(const StepPoint& point) {
  return {
      {"step", point.step}, {"time_s", point.time.count()}, {"loss", finite_or_null(point.loss)}};
}

Json evaluation_json(const EvalPoint& point) {
  Json json = step_json({.step = point.step, .time = point.time, .loss = point.loss});
  json["accuracy"] = finite_or_null(point.accuracy);
  return json;
}

Json span_json(const Span& span) {
  return {{"replica", span.replica},
          {"activity", kActivities.at(static_cast<std::size_t>(span.activity))},
          {"begin_s", span.begin.count()},
          {"end_s", span.end.count()},
          {"step", span.step}};
}

Span span_from_json(const Json& json) {
  const auto name = json.at("activity").get<std::string>();
  std::size_t activity = 0;
  while (activity + 1 < kActivities.size() && kActivities.at(activity) != name) ++activity;
  return {.replica = json.at("replica"),
          .activity = static_cast<Activity>(activity),
          .begin = Seconds(number(json, "begin_s")),
          .end = Seconds(number(json, "end_s")),
          .step = json.at("step")};
}

Json plan_json(const PlanPoint& point) {
  return {{"step", point.step},
          {"time_s", point.time.count()},
          {"keep_ratio", point.plan.keep_ratio},
          {"delay_steps", point.plan.delay_steps},
          {"period_steps", point.plan.period_steps},
          {"merge", name_of(point.plan.merge)},
          {"predicted_step_time_s", finite_or_null(point.predicted_step_time.count())},
          {"reason", point.reason}};
}

PlanPoint plan_from_json(const Json& json) {
  const Result<Merge> merge = parse_merge(json.at("merge").get<std::string>());
  return {.step = json.at("step"),
          .time = Seconds(number(json, "time_s")),
          .plan = {.keep_ratio = json.at("keep_ratio"),
                   .delay_steps = json.at("delay_steps"),
                   .period_steps = json.value("period_steps", 1),
                   .merge = merge.ok() ? *merge : Merge::kOptimizer},
          .predicted_step_time = Seconds(number(json, "predicted_step_time_s")),
          .reason = json.at("reason")};
}

// Adds one event to the run that is being read; true when it was the last one of the run.
bool take_event(const Json& event, RunResult& run) {
  const auto name = event.at("event").get<std::string>();
  if (name == "run_started") {
    run = {};
  } else if (name == "step") {
    run.losses.push_back({.step = event.at("step"),
                          .time = Seconds(number(event, "time_s")),
                          .loss = number(event, "loss")});
    if (event.contains("bytes_up"))
      run.wire.push_back({.up = event.at("bytes_up"), .down = event.at("bytes_down")});
  } else if (name == "evaluation") {
    run.evaluations.push_back({.step = event.at("step"),
                               .time = Seconds(number(event, "time_s")),
                               .loss = number(event, "loss"),
                               .accuracy = number(event, "accuracy")});
  } else if (name == "plan") {
    run.plans.push_back(plan_from_json(event));
  } else if (name == "activity") {
    run.timeline.push_back(span_from_json(event));
  } else if (name == "run_finished") {
    RunResult finished = run_from_json(event);
    finished.losses = std::move(run.losses);
    finished.wire = std::move(run.wire);
    finished.plans = std::move(run.plans);
    finished.evaluations = std::move(run.evaluations);
    finished.timeline = std::move(run.timeline);
    run = std::move(finished);
    return true;
  }
  return false;
}

}  // namespace

Json results_json(const Scenario& scenario, const std::vector<RunResult>& runs, Curves curves) {
  Json list = Json::array();
  for (const RunResult& run : runs) {
    Json json = run_json(run);
    json["plans"] = Json::array();
    for (const PlanPoint& point : run.plans) json["plans"].push_back(plan_json(point));
    if (curves == Curves::kIncluded) {
      json["evaluations"] = Json::array();
      for (const EvalPoint& point : run.evaluations)
        json["evaluations"].push_back(evaluation_json(point));
      json["losses"] = Json::array();
      for (const StepPoint& point : run.losses) json["losses"].push_back(step_json(point));
    }
    list.push_back(std::move(json));
  }
  return {{"scenario", scenario.name},
          {"title", scenario.title},
          {"target", {{"metric", scenario.target.metric}, {"value", scenario.target.value}}},
          {"runs", std::move(list)}};
}

Json verdict_json(const Verdict& verdict) {
  const auto json_of = [](const Judged& judged) {
    return Json{{"recipe", judged.recipe}, {"time_s", value_or_null(judged.time_s)}};
  };
  Json list = Json::array();
  for (const Judged& judged : verdict.judged) {
    Json json = json_of(judged);
    json["regret"] = value_or_null(verdict.regret(judged));
    list.push_back(std::move(json));
  }
  return {{"best_fixed", json_of(verdict.best_fixed)},
          {"clairvoyant", json_of(verdict.clairvoyant)},
          {"judged", std::move(list)}};
}

void write_run_events(EventLog& log, const RunResult& run) {
  log.write("run_started",
            {{"recipe", run.recipe}, {"settings", run.settings}, {"seed", run.seed}});
  for (const PlanPoint& point : run.plans) log.write("plan", plan_json(point));
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    Json step = step_json(run.losses[i]);
    if (i < run.wire.size()) {
      step["bytes_up"] = run.wire[i].up;
      step["bytes_down"] = run.wire[i].down;
    }
    log.write("step", step);
  }
  for (const EvalPoint& point : run.evaluations) log.write("evaluation", evaluation_json(point));
  for (const Span& span : run.timeline) log.write("activity", span_json(span));
  log.write("run_finished", run_json(run));
}

Result<std::vector<RunResult>> read_run_events(std::istream& in) {
  Result<std::vector<Json>> events = read_events(in);
  if (!events.ok()) return events.error();
  std::vector<RunResult> runs;
  RunResult run;
  try {
    for (const Json& event : *events) {
      if (take_event(event, run)) runs.push_back(std::exchange(run, {}));
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{ErrorCode::kInvalidArgument, error.what()};
  }
  return runs;
}

}  // namespace longhaul::lab
