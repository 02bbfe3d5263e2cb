// The data of the report's script, as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "longhaul/lab/factors.h"
#include "longhaul/lab/report_parts.h"

namespace longhaul::lab {
namespace {

using Json = nlohmann::ordered_json;

// A number that is not finite becomes null.
Json curve_of(const RunResult& run) {
  Json curve = Json::array();
  for (const EvalPoint& point : run.evaluations)
    curve.push_back({point.step, point.time.count(), point.loss, point.accuracy});
  return curve;
}

Json timeline_of(const RunResult& run) {
  Json spans = Json::array();
  for (const Span& span : run.timeline)
    spans.push_back({span.replica, static_cast<int>(span.activity), span.begin.count(),
                     span.end.count(), span.step, span.queued.count(), span.latency.count(),
                     span.part});
  return spans;
}

Json share_or_null(const std::optional<double>& share) { return share ? Json(*share) : Json(); }
Json time_or_null(const std::optional<Seconds>& time) {
  return time ? Json(time->count()) : Json();
}

// The layers of a recipe by layer; null for other recipes.
Json layers_of(const RunResult& run) {
  if (run.part_names.empty()) return nullptr;
  return {{"names", run.part_names},
          {"period_steps", run.plan.period_steps},
          {"hidden_share", share_or_null(hidden_share(run))},
          {"exposed_s", time_or_null(exposed(run))},
          {"planned_hidden_share", share_or_null(run.planned_hidden_share)},
          {"planned_exposed_s", time_or_null(run.planned_exposed)}};
}

Json parts_of(const std::optional<TimeSpent>& step) {
  if (!step) return nullptr;
  return {step->computing.count(), step->sending.count(), step->latency.count(),
          step->others.count()};
}

// The mean over runs of their mean step.
Json mean_parts(const Summary& summary, const std::vector<RunResult>& runs) {
  TimeSpent sum;
  double count = 0;
  for (const std::size_t i : summary.runs) {
    const std::optional<TimeSpent> step = mean_step(runs[i]);
    if (!step) continue;
    sum.computing += step->computing;
    sum.sending += step->sending;
    sum.latency += step->latency;
    sum.others += step->others;
    count += 1;
  }
  if (count == 0) return nullptr;
  return {sum.computing.count() / count, sum.sending.count() / count, sum.latency.count() / count,
          sum.others.count() / count};
}

Json median_or_null(const std::optional<Spread>& spread) {
  return spread ? Json(spread->median) : Json(nullptr);
}

Json group_of(const Summary& summary, const std::vector<RunResult>& runs) {
  const RunResult& first = runs[summary.runs.front()];
  Json curves = Json::array();
  for (const std::size_t run : summary.runs) curves.push_back(curve_of(runs[run]));
  Json by_replica = Json::array();
  for (std::size_t i = 0; i < first.spent.size(); ++i)
    by_replica.push_back(parts_of(mean_step_of(first, i)));
  Json plans = Json::array();
  for (const PlanPoint& point : first.plans)
    plans.push_back({point.time.count(), point.plan.keep_ratio, point.plan.delay_steps,
                     point.plan.period_steps});
  Json rates = Json::array();
  for (const RatePoint& point : first.rates)
    rates.push_back({point.time.count(), point.up_bits_per_s, point.down_bits_per_s});
  return {{"name", display_name(summary)},
          {"bytes_up", summary.bytes_up ? summary.bytes_up->median : 0},
          {"bytes_down", summary.bytes_down ? summary.bytes_down->median : 0},
          {"diverged", summary.diverged},
          {"time_to_target_s", median_or_null(summary.time_to_target_s)},
          {"steps_to_target", median_or_null(summary.steps_to_target)},
          {"step_time_s", median_or_null(summary.step_time_s)},
          {"virtual_s", first.virtual_time.count()},
          {"delay_steps", first.plan.delay_steps},
          {"mean_step_s", mean_parts(summary, runs)},
          {"by_replica_s", std::move(by_replica)},
          {"plans", std::move(plans)},
          {"rates", std::move(rates)},
          {"runs", std::move(curves)},
          {"timeline", timeline_of(first)},
          {"layers", layers_of(first)}};
}

// factors[base][recipe]: [time, step time, steps, least and most of steps over seeds].
Json factor_table(const std::vector<Summary>& summaries, const std::vector<RunResult>& runs) {
  Json table = Json::array();
  for (const Summary& base : summaries) {
    Json row = Json::array();
    for (const Summary& summary : summaries) {
      const std::optional<double> time = time_factor(summary, base);
      const std::optional<double> steps = steps_factor(summary, base);
      if (!time || !steps) {
        row.push_back(nullptr);
        continue;
      }
      const std::optional<Spread> seeds = steps_factor_by_seed(summary, base, runs);
      row.push_back({*time, *time / *steps, *steps, seeds ? Json(seeds->least) : Json(),
                     seeds ? Json(seeds->most) : Json()});
    }
    table.push_back(std::move(row));
  }
  return table;
}

// The fixed plans by keep ratio and delay, and where the judged recipes ended.
Json map_of(const Verdict& verdict, const std::vector<RunResult>& runs) {
  Json cells = Json::array();
  for (const Judged& plan : verdict.fixed) {
    const auto run = std::ranges::find(runs, plan.recipe, &RunResult::recipe);
    if (run == runs.end()) continue;
    cells.push_back({{"keep_ratio", run->plan.keep_ratio},
                     {"delay_steps", run->plan.delay_steps},
                     {"time_s", plan.time_s ? Json(*plan.time_s) : Json()},
                     {"is_best", plan.recipe == verdict.best_fixed.recipe}});
  }
  Json judged = Json::array();
  for (const Judged& one : verdict.judged) {
    Json ends = Json::array();
    for (const RunResult& run : runs) {
      if (run.recipe == one.recipe) ends.push_back({run.plan.keep_ratio, run.plan.delay_steps});
    }
    judged.push_back({{"name", one.recipe},
                      {"time_s", one.time_s ? Json(*one.time_s) : Json()},
                      {"ends", std::move(ends)}});
  }
  return {{"cells", std::move(cells)}, {"judged", std::move(judged)}};
}

}  // namespace

// JSON inside a script element: no "<" may end it early.
std::string page_data(const Scenario& scenario, const std::vector<Summary>& summaries,
                      const std::vector<RunResult>& shown, const std::vector<RunResult>& all,
                      const std::optional<Verdict>& verdict) {
  Json groups = Json::array();
  for (const Summary& summary : summaries) groups.push_back(group_of(summary, shown));
  Json data{
      {"target", {{"metric", name_of(scenario.target.metric)}, {"value", scenario.target.value}}},
      {"clock", is_rehearsal(all) ? "real" : "virtual"},
      {"groups", std::move(groups)},
      {"factors", factor_table(summaries, shown)}};
  data["oracle"] = verdict ? map_of(*verdict, all) : Json(nullptr);
  std::string out;
  for (const char c : data.dump(-1, ' ', true, Json::error_handler_t::replace))
    out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

}  // namespace longhaul::lab
