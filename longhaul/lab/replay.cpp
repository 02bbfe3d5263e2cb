#include "longhaul/lab/replay.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/lab/links.h"
#include "longhaul/lab/run.h"
#include "longhaul/lab/timekeeper.h"
#include "longhaul/lab/timing.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::lab {
namespace {

Error cannot(const RunResult& run, const std::string& why) {
  return Error{ErrorCode::kMismatch, "replay of " + run.recipe + ": " + why};
}

// The events of a run, by sizes alone: what SimulatedNetwork does with payloads. Notes the time
// line and where the time went.
std::vector<Seconds> times_of(const Scenario& scenario, const std::vector<StepWire>& wires,
                              const std::vector<SimulatedPeer>& peers, RunResult& run) {
  const std::size_t replicas = peers.size();
  std::vector<Seconds> latencies;
  latencies.reserve(replicas);
  for (const SimulatedPeer& peer : peers) latencies.push_back(peer.link.latency);
  Timekeeper keeper(run, std::move(latencies));
  const auto note = [&](std::size_t replica, std::size_t step, bool is_up, Seconds begin,
                        const Passage& passage, double bytes) {
    keeper.transferred({.replica = replica,
                        .is_up = is_up,
                        .round = {.step = step},
                        .begin = begin,
                        .first_byte = passage.first_byte,
                        .end = passage.end,
                        .bytes = static_cast<std::size_t>(bytes)});
    return passage.end;
  };
  const auto delay = static_cast<std::size_t>(run.delay_steps);
  std::vector<SimulatedLink> links;
  links.reserve(replicas);
  for (const SimulatedPeer& peer : peers) links.emplace_back(peer.link);
  std::vector<Seconds> now(replicas);
  std::vector<std::vector<Seconds>> arrived;  // by round, then by replica
  std::vector<Seconds> times;
  for (std::size_t step = 0; step < wires.size(); ++step) {
    const StepWire& wire = wires[step];
    run.wire.emplace_back();
    const std::size_t senders = wire.up.size();  // none: the step had no round
    Seconds closed{};
    for (std::size_t i = 0; i < replicas; ++i) {
      const Seconds begin = now[i];
      now[i] += scenario.replicas[i].step_time;
      keeper.computed(step, i, begin, now[i]);
    }
    for (std::size_t i = 0; i < senders; ++i)
      closed = std::max(
          closed, note(i, step, true, now[i], links[i].send_up(now[i], wire.up[i]), wire.up[i]));
    std::vector<Seconds>& back = arrived.emplace_back();
    for (std::size_t i = 0; i < senders; ++i)
      back.push_back(
          note(i, step, false, closed, links[i].send_down(closed, wire.down[i]), wire.down[i]));
    for (std::size_t i = 0; step >= delay && i < arrived[step - delay].size(); ++i) {
      const Seconds begin = now[i];
      now[i] = std::max(now[i], arrived[step - delay][i]);
      keeper.waited(step, i, begin, now[i]);
    }
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
  run.timeline.clear();
  run.spent.clear();
  const std::vector<StepWire> wires = std::exchange(run.wire, {});
  const std::vector<Seconds> times = times_of(scenario, wires, *peers, run);
  for (std::size_t i = 0; i < times.size(); ++i) run.losses[i].time = times[i];
  for (EvalPoint& point : run.evaluations) {
    if (point.step == 0 || point.step > times.size()) return cannot(run, "damaged evaluations");
    point.time = times[point.step - 1];
  }
  run.virtual_time = times.back();
  fill_in_times(scenario, run);
  return run;
}

}  // namespace longhaul::lab
