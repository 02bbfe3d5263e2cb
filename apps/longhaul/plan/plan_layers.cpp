#include "apps/longhaul/plan/plan_layers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "apps/longhaul/plan/plan_rows.h"
#include "apps/longhaul/plan/schedule_drawing.h"
#include "longhaul/base/units.h"
#include "longhaul/plan/layer_planner.h"
#include "longhaul/plan/reason.h"

namespace longhaul::apps {
namespace {

LayerLink link_of(const PlanOptions& request) {
  if (request.recipe.planner == PlannerKind::kAuto)  // its codec has smaller dense layers
    return layer_link(Conditions(request.replicas, request.link), request.sizes(), 1);
  return {.up = request.link.up,
          .down = request.link.down,
          .latency = request.link.latency,
          .is_one_way = request.is_one_way};
}

// The whole model as one message.
LayerSchedule whole_schedule(const PlanOptions& request, std::size_t period_steps) {
  const LayerProfile whole = merged_layers(request.parts, group_layers(request.parts, 1));
  return make_layer_schedule(whole, link_of(request), LayerPolicy::kWhole, period_steps);
}

Seconds d_sgd_step_time(const PlanOptions& request) {
  return whole_schedule(request, 1).timeline.step_time;
}

Plan plan_of(const PlanOptions& request, const LayerSchedule& schedule) {
  Plan plan = request.recipe.plan;
  if (request.recipe.planner == PlannerKind::kAuto) plan.merge = Merge::kLate;
  plan.period_steps = static_cast<int>(schedule.steps.size());
  plan.delay_steps = schedule.longest_delay();
  return plan;
}

nlohmann::ordered_json names_by_step(const LayerProfile& parts, const LayerSteps& steps) {
  auto names = nlohmann::ordered_json::array();
  for (const auto& layers : steps) {
    nlohmann::ordered_json& step = names.emplace_back(nlohmann::ordered_json::array());
    for (const std::uint32_t layer : layers) step.push_back(parts.layers[layer].name);
  }
  return names;
}

std::string step_time_text(const PlanOptions& request, const LayerSchedule& schedule) {
  const auto share = [&](Seconds step) { return percent(request.link.compute / step); };
  const Seconds step = schedule.timeline.step_time;
  const Seconds d_sgd = d_sgd_step_time(request);
  return to_string(step) + ", " + share(step) + " computing (d-sgd: " + to_string(d_sgd) + ", " +
         share(d_sgd) + "; bound of all schedules: " + to_string(schedule.bound) + ')';
}

}  // namespace

LayerSchedule schedule_for(const PlanOptions& request) {
  auto period = static_cast<std::size_t>(request.recipe.plan.period_steps);
  const LayerPolicy policy = request.recipe.layers;
  // Local SGD in parts has the period of local SGD, so that the two can be compared.
  if (policy == LayerPolicy::kAsReady && period == 0)
    period = whole_schedule(request, 0).steps.size();
  return make_layer_schedule(request.parts, link_of(request), policy, period);
}

LayerSchedule schedule_of(const PlanOptions& request, const Decision& decision) {
  const Plan& plan = decision.plan;
  const LayerLink link = link_of(request);
  const bool is_late = plan.delay_steps > 0;
  LayerSchedule schedule{
      .steps = plan.schedule,
      .delays = std::vector<int>(is_late ? request.parts.layers.size() : 0, plan.delay_steps),
      .bound = step_time_bound(LayerCosts(request.parts, link), plan.schedule.size(), is_late),
      .reason = decision.reason};
  schedule.timeline = layer_timeline(request.parts, link, schedule.steps, schedule.delays);
  return schedule;
}

nlohmann::ordered_json layer_plan_json(const PlanOptions& request, const LayerSchedule& schedule,
                                       std::optional<double> relative_steps) {
  const LayerTimeline& timeline = schedule.timeline;
  nlohmann::ordered_json json{{"recipe", request.recipe.name},
                              {"codec", request.recipe.codec.name()}};
  json.update(plan_json(plan_of(request, schedule)));
  json["schedule"] = names_by_step(request.parts, schedule.steps);
  json.update({{"step_time_s", timeline.step_time.count()},
               {"efficiency", request.link.compute / timeline.step_time},
               {"exposed_s", (timeline.step_time - request.link.compute).count()},
               {"hidden_share", timeline.hidden_share},
               {"bound_s", schedule.bound.count()},
               {"relative_steps", relative_steps ? nlohmann::ordered_json(*relative_steps)
                                                 : nlohmann::ordered_json(nullptr)},
               {"bytes_up", timeline.bytes},
               {"bytes_down", request.is_one_way ? 0 : timeline.bytes},
               {"way_down", request.is_one_way ? "one-way" : "dense"},
               {"d_sgd_step_time_s", d_sgd_step_time(request).count()},
               {"reason", schedule.reason}});
  return json;
}

std::string layer_plan_text(const PlanOptions& request, const LayerSchedule& schedule) {
  const LayerTimeline& timeline = schedule.timeline;
  std::string rows = row("model", formatted("%.4g million parameters in ",
                                            1e-6 * static_cast<double>(request.elements)) +
                                      std::to_string(request.parts.layers.size()) + " parts, " +
                                      to_string(request.link.compute) + " of computing a step");
  rows += row("codec", request.recipe.codec.name());
  for (const PlanCell& knob : plan_cells(plan_of(request, schedule)))
    rows += row(knob.name, knob.value + (knob.unit.empty() ? "" : ' ' + knob.unit));
  rows += paragraph("step time", step_time_text(request, schedule));
  rows +=
      row("sends", size_text(timeline.bytes) + (request.is_one_way ? " one way" : " up and down") +
                       " per replica and period");
  rows += paragraph("because", schedule.reason);
  return rows + '\n' + schedule_drawing(request.parts, link_of(request), schedule);
}

}  // namespace longhaul::apps
