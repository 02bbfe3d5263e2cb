#include "longhaul/lab/replay.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/job/recipe_choice.h"
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
  std::vector<Fifo> up;
  std::vector<Fifo> down;
  for (const SimulatedPeer& peer : peers) {
    up.emplace_back(peer.link.up, peer.link.latency);
    down.emplace_back(peer.link.down, peer.link.latency);
  }
  const auto send = [&](std::size_t replica, RoundId round, bool is_up, Seconds begin,
                        double bytes) {
    Fifo& line = (is_up ? up : down)[replica];
    const Seconds first_byte = line.first_byte(begin);
    const Seconds end = line.send(begin, bytes);
    keeper.transferred({.replica = replica,
                        .is_up = is_up,
                        .round = round,
                        .begin = begin,
                        .first_byte = first_byte,
                        .end = end,
                        .bytes = static_cast<std::size_t>(bytes)});
    return end;
  };
  const auto delay = static_cast<std::size_t>(run.plan.delay_steps);
  std::vector<Seconds> now(replicas);
  std::map<RoundId, std::vector<Seconds>> arrived;  // by replica
  std::vector<Seconds> times;
  for (std::size_t step = 0; step < wires.size(); ++step) {
    run.wire.emplace_back();
    for (std::size_t i = 0; i < replicas; ++i) {
      const Seconds begin = now[i];
      now[i] += scenario.replicas[i].step_time;
      keeper.computed(step, i, begin, now[i]);
    }
    std::map<std::uint32_t, Seconds> closed;  // by part
    for (std::size_t i = 0; i < replicas; ++i) {
      for (const auto& [part, wire] : wires[step]) {
        const RoundId round{.step = step, .part = part};
        closed[part] = std::max(closed[part], send(i, round, true, now[i], wire.up[i]));
      }
    }
    for (const auto& [part, wire] : wires[step]) {
      const RoundId round{.step = step, .part = part};
      for (std::size_t i = 0; i < replicas; ++i)
        arrived[round].push_back(send(i, round, false, closed[part], wire.down[i]));
    }
    if (step >= delay && !wires[step - delay].empty()) {
      const auto due = arrived.lower_bound({.step = step - delay});
      const auto later = arrived.lower_bound({.step = step - delay + 1});
      for (std::size_t i = 0; i < replicas; ++i) {
        const Seconds begin = now[i];
        for (auto mean = due; mean != later; ++mean) now[i] = std::max(now[i], mean->second[i]);
        keeper.waited(step, i, begin, now[i]);
      }
    }
    times.push_back(*std::ranges::max_element(now));
  }
  return times;
}

}  // namespace

Result<RunResult> replay(const Scenario& scenario, RunResult run) {
  if (!run.plans.empty()) return cannot(run, "its plan depends on the links; run it again");
  if (!check_plan_limits(run.plan).ok()) return cannot(run, "damaged plan");
  if (run.wire.size() != run.losses.size() || run.wire.empty())
    return cannot(run, "the log holds no bytes by step");
  const std::size_t replicas = scenario.replicas.size();
  for (const StepWire& wires : run.wire) {
    for (const auto& [part, wire] : wires) {
      if (wire.up.size() != replicas || wire.down.size() != replicas)
        return cannot(run, "expected " + std::to_string(replicas) + " replicas, got " +
                               std::to_string(wire.up.size()));
    }
  }
  (void)LONGHAUL_TRY(recipe_settings(run.recipe));
  Result<std::vector<SimulatedPeer>> peers = free_peers_of(scenario);
  if (!find_recipe(recipe_name(run.recipe))->is_free) peers = peers_of(scenario, run.seed);
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
