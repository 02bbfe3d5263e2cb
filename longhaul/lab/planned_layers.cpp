#include "longhaul/lab/planned_layers.h"

#include <algorithm>

#include "longhaul/lab/links.h"
#include "longhaul/plan/layer_planner.h"

namespace longhaul::lab {
namespace {

// While at least one layer is on its way, in one period: as the Timekeeper measures it.
Seconds communicating(const LayerTimeline& timeline, double period) {
  Seconds sum{};
  Seconds until{};
  for (const LayerTimeline::Trip& trip : timeline.trips) {
    sum += std::max(Seconds(0), trip.back - std::max(trip.ready, until));
    until = std::max(until, trip.back);
  }
  // Layers that are late at the end of a period are on their way in the next one too.
  return std::min(sum, timeline.step_time * period);
}

}  // namespace

void fill_in_planned_layers(const Job& job, const LayerTable& layers, RunResult& run) {
  if (!job.recipe.is_by_layer_with(run.plan)) return;
  const Result<EngineOptions> options = engine_options(job, layers);
  if (!options.ok()) return;
  const PlannerOptions planned = planner_options(*options);
  if (planned.parts.layers.empty()) return;
  for (const LayerProfile::Layer& part : planned.parts.layers) run.part_names.push_back(part.name);
  const Recipe& recipe = job.recipe;
  const RoundSizes sizes(recipe.codec, run.parameters, run.replicas, {}, recipe.way_down(), layers);
  const LayerTimeline timeline = timeline_of(run.plan, planned, conditions_of(job.scenario), sizes);
  run.planned_exposed = timeline.exposed;
  const Seconds on_the_way = communicating(timeline, run.plan.period_steps);
  if (on_the_way > Seconds(0))
    run.planned_hidden_share = std::max(0.0, 1 - timeline.exposed / on_the_way);
}

}  // namespace longhaul::lab
