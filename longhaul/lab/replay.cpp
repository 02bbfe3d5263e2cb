#include "longhaul/lab/replay.h"

#include <algorithm>
#include <string>
#include <vector>

#include "longhaul/lab/links.h"
#include "longhaul/lab/run.h"
#include "longhaul/lab/timing.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::lab {
namespace {

Error cannot(const RunResult& run, const std::string& why) {
  return Error{ErrorCode::kMismatch, "replay of " + run.recipe + ": " + why};
}

// The events of a run, by sizes alone: what SimulatedNetwork does with payloads.
std::vector<Seconds> times_of(const Scenario& scenario, const RunResult& run,
                              const std::vector<SimulatedPeer>& peers) {
  const std::size_t replicas = peers.size();
  const auto delay = static_cast<std::size_t>(run.delay_steps);
  std::vector<SimulatedLink> links;
  links.reserve(replicas);
  for (const SimulatedPeer& peer : peers) links.emplace_back(peer.link);
  std::vector<Seconds> now(replicas);
  std::vector<std::vector<Seconds>> arrived;  // by round, then by replica
  std::vector<Seconds> times;
  for (std::size_t step = 0; step < run.wire.size(); ++step) {
    const StepWire& wire = run.wire[step];
    const std::size_t senders = wire.up.size();  // none: the step had no round
    Seconds closed{};
    for (std::size_t i = 0; i < replicas; ++i) now[i] += scenario.replicas[i].step_time;
    for (std::size_t i = 0; i < senders; ++i)
      closed = std::max(closed, links[i].send_up(now[i], wire.up[i]).end);
    std::vector<Seconds>& back = arrived.emplace_back();
    for (std::size_t i = 0; i < senders; ++i)
      back.push_back(links[i].send_down(closed, wire.down[i]).end);
    for (std::size_t i = 0; step >= delay && i < arrived[step - delay].size(); ++i)
      now[i] = std::max(now[i], arrived[step - delay][i]);
    times.push_back(*std::ranges::max_element(now));
  }
  return times;
}

}  // namespace

Result<RunResult> replay(const Scenario& scenario, RunResult run) {
  if (!run.plans.empty()) return cannot(run, "its plan depends on the links; run it again");
  if (run.period_steps < 1 || run.delay_steps < 0) return cannot(run, "damaged plan");
  if (run.wire.size() != run.losses.size() || run.wire.empty())
    return cannot(run, "the log holds no bytes by step");
  const std::size_t replicas = scenario.replicas.size();
  for (const StepWire& wire : run.wire) {
    if (wire.up.empty() && wire.down.empty()) continue;
    if (wire.up.size() != replicas || wire.down.size() != replicas)
      return cannot(run, "expected " + std::to_string(replicas) + " replicas, got " +
                             std::to_string(wire.up.size()));
  }
  const Result<RecipeChoice> choice = parse_recipe_choice(run.recipe);
  if (!choice.ok()) return choice.error();
  Result<std::vector<SimulatedPeer>> peers = free_peers_of(scenario);
  if (!find_recipe(choice->name)->is_free) peers = peers_of(scenario, run.seed);
  if (!peers.ok()) return peers.error();
  const std::vector<Seconds> times = times_of(scenario, run, *peers);
  for (std::size_t i = 0; i < times.size(); ++i) run.losses[i].time = times[i];
  for (EvalPoint& point : run.evaluations) {
    if (point.step == 0 || point.step > times.size()) return cannot(run, "damaged evaluations");
    point.time = times[point.step - 1];
  }
  run.virtual_time = times.back();
  run.timeline.clear();
  fill_in_times(scenario, run);
  return run;
}

}  // namespace longhaul::lab
