#include "longhaul/lab/results_json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "longhaul/lab/run_json.h"

namespace longhaul::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kActivities{"compute", "send", "receive", "wait"};

Json number_or_null(const std::optional<double>& value) {
  return value ? finite_or_null(*value) : Json(nullptr);
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
  Json json{{"replica", span.replica},
            {"activity", kActivities.at(static_cast<std::size_t>(span.activity))},
            {"begin_s", span.begin.count()},
            {"end_s", span.end.count()},
            {"step", span.step}};
  if (span.activity == Activity::kSend || span.activity == Activity::kReceive) {
    json["queued_s"] = span.queued.count();
    json["latency_s"] = span.latency.count();
  }
  return json;
}

Json rate_json(const RatePoint& point) {
  return {{"time_s", point.time.count()},
          {"up_bits_per_s", finite_or_null(point.up_bits_per_s)},
          {"down_bits_per_s", finite_or_null(point.down_bits_per_s)}};
}

Json wire_json(const StepPoint& point, const StepWire& wire) {
  Json step = step_json(point);
  step["bytes_up"] = wire.up;
  step["bytes_down"] = wire.down;
  step["line_up_s"] = wire.up_line_s;
  step["line_down_s"] = wire.down_line_s;
  return step;
}

std::vector<double> numbers(const Json& event, const char* key) {
  return event.value(key, std::vector<double>{});
}

Span span_from_json(const Json& json) {
  const auto name = json.at("activity").get<std::string>();
  std::size_t activity = 0;
  while (activity + 1 < kActivities.size() && kActivities.at(activity) != name) ++activity;
  return {.replica = json.at("replica"),
          .activity = static_cast<Activity>(activity),
          .begin = Seconds(number_or_nan(json, "begin_s")),
          .end = Seconds(number_or_nan(json, "end_s")),
          .step = json.at("step"),
          .queued = Seconds(json.value("queued_s", 0.0)),
          .latency = Seconds(json.value("latency_s", 0.0))};
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
          .time = Seconds(number_or_nan(json, "time_s")),
          .plan = {.keep_ratio = json.at("keep_ratio"),
                   .delay_steps = json.at("delay_steps"),
                   .period_steps = json.value("period_steps", 1),
                   .merge = merge.ok() ? *merge : Merge::kOptimizer},
          .predicted_step_time = Seconds(number_or_nan(json, "predicted_step_time_s")),
          .reason = json.at("reason")};
}

// Adds one event to the run that is being read; true when it was the last one of the run.
bool take_event(const Json& event, RunResult& run) {
  const auto name = event.at("event").get<std::string>();
  if (name == "run_started") {
    run = {};
  } else if (name == "step") {
    run.losses.push_back({.step = event.at("step"),
                          .time = Seconds(number_or_nan(event, "time_s")),
                          .loss = number_or_nan(event, "loss")});
    if (event.contains("bytes_up"))
      run.wire.push_back({.up = event.at("bytes_up"),
                          .down = event.at("bytes_down"),
                          .up_line_s = numbers(event, "line_up_s"),
                          .down_line_s = numbers(event, "line_down_s")});
  } else if (name == "evaluation") {
    run.evaluations.push_back({.step = event.at("step"),
                               .time = Seconds(number_or_nan(event, "time_s")),
                               .loss = number_or_nan(event, "loss"),
                               .accuracy = number_or_nan(event, "accuracy")});
  } else if (name == "plan") {
    run.plans.push_back(plan_from_json(event));
  } else if (name == "activity") {
    run.timeline.push_back(span_from_json(event));
  } else if (name == "rate") {
    run.rates.push_back({.time = Seconds(number_or_nan(event, "time_s")),
                         .up_bits_per_s = number_or_nan(event, "up_bits_per_s"),
                         .down_bits_per_s = number_or_nan(event, "down_bits_per_s")});
  } else if (name == "run_finished") {
    RunResult finished = run_from_json(event);
    finished.losses = std::move(run.losses);
    finished.wire = std::move(run.wire);
    finished.plans = std::move(run.plans);
    finished.evaluations = std::move(run.evaluations);
    finished.timeline = std::move(run.timeline);
    finished.rates = std::move(run.rates);
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
      json["rates"] = Json::array();
      for (const RatePoint& point : run.rates) json["rates"].push_back(rate_json(point));
    }
    list.push_back(std::move(json));
  }
  return {{"scenario", scenario.name},
          {"title", scenario.title},
          {"clock", is_rehearsal(runs) ? "real" : "virtual"},
          {"target", {{"metric", scenario.target.metric}, {"value", scenario.target.value}}},
          {"runs", std::move(list)}};
}

Json verdict_json(const Verdict& verdict) {
  const auto json_of = [](const Judged& judged) {
    return Json{{"recipe", judged.recipe}, {"time_s", number_or_null(judged.time_s)}};
  };
  Json list = Json::array();
  for (const Judged& judged : verdict.judged) {
    Json json = json_of(judged);
    json["regret"] = number_or_null(verdict.regret(judged));
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
    log.write("step", i < run.wire.size() ? wire_json(run.losses[i], run.wire[i])
                                          : step_json(run.losses[i]));
  }
  for (const EvalPoint& point : run.evaluations) log.write("evaluation", evaluation_json(point));
  for (const Span& span : run.timeline) log.write("activity", span_json(span));
  for (const RatePoint& point : run.rates) log.write("rate", rate_json(point));
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
