#include "longhaul/lab/run_json.h"

#include <cmath>
#include <limits>
#include <optional>

#include "longhaul/lab/factors.h"

namespace longhaul::lab {

NLOHMANN_JSON_SERIALIZE_ENUM(RunStatus, {{RunStatus::kDone, "done"},
                                         {RunStatus::kDiverged, "diverged"},
                                         {RunStatus::kInterrupted, "interrupted"}})

namespace {
using Json = nlohmann::ordered_json;
}  // namespace

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double number_or_nan(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

namespace {

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

template <typename T>
std::optional<T> maybe(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (value.is_null()) return std::nullopt;
  if constexpr (std::is_same_v<T, Seconds>)
    return Seconds(value.get<double>());
  else
    return value.get<T>();
}

Json spent_json(const TimeSpent& spent) {
  return {{"computing_s", spent.computing.count()},
          {"sending_s", spent.sending.count()},
          {"latency_s", spent.latency.count()},
          {"others_s", spent.others.count()},
          {"communicating_s", spent.communicating.count()}};
}

// The parts of a mean step over replicas, and of the whole run for each replica.
void add_time_spent(const RunResult& run, Json& json) {
  const std::optional<TimeSpent> step = mean_step(run);
  json["computing"] = value_or_null(computing_share(run));
  const Json mean = spent_json(step.value_or(TimeSpent{}));
  for (const auto& [key, value] : mean.items()) json[key] = step ? value : Json(nullptr);
  Json by_replica = Json::array();
  for (const TimeSpent& one : run.spent) by_replica.push_back(spent_json(one));
  json["hidden_share"] = value_or_null(hidden_share(run));
  json["exposed_s"] = value_or_null(exposed(run));
  json["time_by_replica"] = std::move(by_replica);
}

void read_time_spent(const Json& json, RunResult& run) {
  const auto found = json.find("time_by_replica");
  if (found == json.end()) return;  // a log of an older program
  for (const Json& one : *found)
    run.spent.push_back({.computing = Seconds(number_or_nan(one, "computing_s")),
                         .sending = Seconds(number_or_nan(one, "sending_s")),
                         .latency = Seconds(number_or_nan(one, "latency_s")),
                         .others = Seconds(number_or_nan(one, "others_s")),
                         .communicating = Seconds(one.value("communicating_s", 0.0))});
}

// The names of the parts that have a round in each step of a period.
Json schedule_names(const RunResult& run) {
  Json steps = Json::array();
  if (run.part_names.empty()) return steps;
  for (std::size_t step = 0; step < static_cast<std::size_t>(run.plan.period_steps); ++step) {
    Json names = Json::array();
    for (const std::uint32_t part : parts_in_step(run.plan, run.part_names.size(), step))
      names.push_back(run.part_names.at(part));
    steps.push_back(std::move(names));
  }
  return steps;
}

void add_layers(const RunResult& run, Json& json) {
  json["part_names"] = run.part_names;
  json["schedule_names"] = schedule_names(run);
  json["planned_hidden_share"] = value_or_null(run.planned_hidden_share);
  json["planned_exposed_s"] = value_or_null(run.planned_exposed);
}

void read_layers(const Json& json, RunResult& run) {
  if (!json.contains("part_names")) return;  // a log of an older program
  run.part_names = json.at("part_names");
  run.planned_hidden_share = maybe<double>(json, "planned_hidden_share");
  run.planned_exposed = maybe<Seconds>(json, "planned_exposed_s");
}

}  // namespace

Json run_json(const RunResult& run) {
  Json json{{"recipe", run.recipe},
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
            {"bytes_down", run.bytes_down}};
  json.update(plan_json(run.plan));
  json.update({{"codec", run.codec},
               {"non_finite_steps", run.non_finite_steps},
               {"predicted_step_time_s", value_or_null(run.predicted_step_time)},
               {"late_steps", run.late_steps},
               {"digest", run.digest}});
  add_time_spent(run, json);
  add_layers(run, json);
  return json;
}

Result<RunResult> run_from_json(const Json& json) {
  const Plan plan = LONGHAUL_TRY(plan_from_json(json));
  RunResult run{.plan = plan};
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
  run.virtual_time = Seconds(number_or_nan(json, "virtual_s"));
  run.step_time = Seconds(number_or_nan(json, "step_time_s"));
  run.efficiency = number_or_nan(json, "efficiency");
  run.bytes_up = json.at("bytes_up");
  run.bytes_down = json.at("bytes_down");
  run.codec = json.at("codec");
  run.non_finite_steps = json.at("non_finite_steps");
  run.predicted_step_time = maybe<Seconds>(json, "predicted_step_time_s");
  run.late_steps = json.at("late_steps");
  run.digest = json.at("digest");
  read_time_spent(json, run);
  read_layers(json, run);
  return run;
}

Json plan_point_json(const PlanPoint& point) {
  Json json{{"step", point.step}, {"time_s", point.time.count()}};
  json.update(plan_json(point.plan));
  json["predicted_step_time_s"] = finite_or_null(point.predicted_step_time.count());
  json["reason"] = point.reason;
  return json;
}

Result<PlanPoint> plan_point_from_json(const Json& json) {
  const Plan plan = LONGHAUL_TRY(plan_from_json(json));
  return PlanPoint{.step = json.at("step"),
                   .time = Seconds(number_or_nan(json, "time_s")),
                   .plan = plan,
                   .predicted_step_time = Seconds(number_or_nan(json, "predicted_step_time_s")),
                   .reason = json.at("reason")};
}

}  // namespace longhaul::lab
