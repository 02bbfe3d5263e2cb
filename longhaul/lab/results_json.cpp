#include "longhaul/lab/results_json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "longhaul/lab/run_json.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kActivities{"compute", "send", "receive", "wait"};

Json number_or_null(const std::optional<double>& value) {
  return value ? finite_or_null(*value) : Json(nullptr);
}

Json step_json(const EvalPoint& point) {
  return {
      {"step", point.step}, {"time_s", point.time.count()}, {"loss", finite_or_null(point.loss)}};
}

Json evaluation_json(const EvalPoint& point) {
  Json json = step_json(point);
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
  if (span.activity != Activity::kCompute) json["part"] = span.part;
  return json;
}

Json rate_json(const RatePoint& point) {
  return {{"time_s", point.time.count()},
          {"up_bits_per_s", finite_or_null(point.up_bits_per_s)},
          {"down_bits_per_s", finite_or_null(point.down_bits_per_s)}};
}

void put_wire(const RoundWire& wire, Json& json) {
  json["bytes_up"] = wire.up;
  json["bytes_down"] = wire.down;
  json["line_up_s"] = wire.up_line_s;
  json["line_down_s"] = wire.down_line_s;
}

void add_to(std::vector<double>& sum, const std::vector<double>& values) {
  sum.resize(std::max(sum.size(), values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
}

// The sum over the rounds of the step; each of them too, if it is not of part 0 alone.
Json wire_json(const EvalPoint& point, const StepWire& wires) {
  RoundWire sum;
  Json rounds = Json::array();
  for (const auto& [part, wire] : wires) {
    add_to(sum.up, wire.up);
    add_to(sum.down, wire.down);
    add_to(sum.up_line_s, wire.up_line_s);
    add_to(sum.down_line_s, wire.down_line_s);
    rounds.push_back({{"part", part}});
    put_wire(wire, rounds.back());
  }
  Json step = step_json(point);
  put_wire(sum, step);
  if (!wires.empty() && wires.rbegin()->first > 0) step["rounds"] = std::move(rounds);
  return step;
}

std::vector<double> numbers(const Json& event, const char* key) {
  return event.value(key, std::vector<double>{});
}

RoundWire wire_from_json(const Json& json) {
  return {.up = json.at("bytes_up"),
          .down = json.at("bytes_down"),
          .up_line_s = numbers(json, "line_up_s"),
          .down_line_s = numbers(json, "line_down_s")};
}

StepWire wires_from_json(const Json& event) {
  StepWire wires;
  if (event.contains("rounds")) {
    for (const Json& round : event.at("rounds")) wires[round.at("part")] = wire_from_json(round);
  } else if (RoundWire wire = wire_from_json(event); !wire.up.empty() || !wire.down.empty()) {
    wires[0] = std::move(wire);
  }
  return wires;
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
          .part = json.value("part", 0U),
          .queued = Seconds(json.value("queued_s", 0.0)),
          .latency = Seconds(json.value("latency_s", 0.0))};
}

// Adds one event to the run that is being read; true when it was the last one of the run.
Result<bool> take_event(const Json& event, RunResult& run) {
  const auto name = event.at("event").get<std::string>();
  if (name == "run_started") {
    run = {};
  } else if (name == "step") {
    run.losses.push_back({.step = event.at("step"),
                          .time = Seconds(number_or_nan(event, "time_s")),
                          .loss = number_or_nan(event, "loss")});
    if (event.contains("bytes_up")) run.wire.push_back(wires_from_json(event));
  } else if (name == "evaluation") {
    run.evaluations.push_back({.step = event.at("step"),
                               .time = Seconds(number_or_nan(event, "time_s")),
                               .loss = number_or_nan(event, "loss"),
                               .accuracy = number_or_nan(event, "accuracy")});
  } else if (name == "plan") {
    PlanPoint point = LONGHAUL_TRY(plan_point_from_json(event));
    run.plans.push_back(std::move(point));
  } else if (name == "activity") {
    run.timeline.push_back(span_from_json(event));
  } else if (name == "rate") {
    run.rates.push_back({.time = Seconds(number_or_nan(event, "time_s")),
                         .up_bits_per_s = number_or_nan(event, "up_bits_per_s"),
                         .down_bits_per_s = number_or_nan(event, "down_bits_per_s")});
  } else if (name == "run_finished") {
    RunResult finished = LONGHAUL_TRY(run_from_json(event));
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

Json results_json(const Scenario& scenario, const std::vector<RunResult>& runs) {
  Json list = Json::array();
  for (const RunResult& run : runs) {
    Json json = run_json(run);
    json["plans"] = Json::array();
    for (const PlanPoint& point : run.plans) json["plans"].push_back(plan_point_json(point));
    list.push_back(std::move(json));
  }
  return {
      {"scenario", scenario.name},
      {"title", scenario.title},
      {"clock", is_rehearsal(runs) ? "real" : "virtual"},
      {"target", {{"metric", name_of(scenario.target.metric)}, {"value", scenario.target.value}}},
      {"runs", std::move(list)}};
}

Json results_json_with_curves(const Scenario& scenario, const std::vector<RunResult>& runs) {
  Json results = results_json(scenario, runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json& json = results["runs"][i];
    json["evaluations"] = Json::array();
    for (const EvalPoint& point : runs[i].evaluations)
      json["evaluations"].push_back(evaluation_json(point));
    json["losses"] = Json::array();
    for (const EvalPoint& point : runs[i].losses) json["losses"].push_back(step_json(point));
    json["rates"] = Json::array();
    for (const RatePoint& point : runs[i].rates) json["rates"].push_back(rate_json(point));
  }
  return results;
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

void write_run_events(std::ostream& out, const RunResult& run) {
  write_event(out, "run_started",
              {{"recipe", run.recipe}, {"settings", run.settings}, {"seed", run.seed}});
  for (const PlanPoint& point : run.plans) write_event(out, "plan", plan_point_json(point));
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    write_event(
        out, "step",
        i < run.wire.size() ? wire_json(run.losses[i], run.wire[i]) : step_json(run.losses[i]));
  }
  for (const EvalPoint& point : run.evaluations)
    write_event(out, "evaluation", evaluation_json(point));
  for (const Span& span : run.timeline) write_event(out, "activity", span_json(span));
  for (const RatePoint& point : run.rates) write_event(out, "rate", rate_json(point));
  write_event(out, "run_finished", run_json(run));
}

Result<std::vector<RunResult>> read_run_events(std::istream& in) {
  std::vector<Json> events = LONGHAUL_TRY(read_events(in));
  std::vector<RunResult> runs;
  RunResult run;
  try {
    for (const Json& event : events) {
      const bool is_last = LONGHAUL_TRY(take_event(event, run));
      if (is_last) runs.push_back(std::exchange(run, {}));
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{ErrorCode::kInvalidArgument, error.what()};
  }
  return runs;
}

}  // namespace longhaul::lab
