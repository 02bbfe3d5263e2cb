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

using Arrivals = std::map<RoundId, std::vector<Seconds>>;  // of means, by replica

std::vector<Seconds> latencies_of(const std::vector<SimulatedPeer>& peers) {
  std::vector<Seconds> latencies;
  latencies.reserve(peers.size());
  for (const SimulatedPeer& peer : peers) latencies.push_back(peer.link.latency);
  return latencies;
}

// Sends one message on the line of its replica and returns when it is there.
Seconds send(Transfer message, std::vector<Fifo>& lines, Timekeeper& keeper) {
  Fifo& line = lines[message.replica];
  message.first_byte = line.first_byte(message.begin);
  message.end = line.send(message.begin, static_cast<double>(message.bytes));
  keeper.transferred(message);
  return message.end;
}

// The updates of a step leave when their replicas have computed. Returns when each part's round has
// closed.
std::map<std::uint32_t, Seconds> send_up(std::size_t step, const StepWire& wires,
                                         const std::vector<Seconds>& now, std::vector<Fifo>& lines,
                                         Timekeeper& keeper) {
  std::map<std::uint32_t, Seconds> closed;
  for (std::size_t i = 0; i < now.size(); ++i) {
    for (const auto& [part, wire] : wires) {
      const Seconds arrived = send({.replica = i,
                                    .is_up = true,
                                    .round = {.step = step, .part = part},
                                    .begin = now[i],
                                    .bytes = static_cast<std::size_t>(wire.up[i])},
                                   lines, keeper);
      closed[part] = std::max(closed[part], arrived);
    }
  }
  return closed;
}

// The replicas wait for the means of `born`, the step whose rounds are due.
void await_means(std::size_t step, std::size_t born, const Arrivals& arrived,
                 std::vector<Seconds>& now, Timekeeper& keeper) {
  const auto due = arrived.lower_bound({.step = born});
  const auto later = arrived.lower_bound({.step = born + 1});
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Seconds begin = now[i];
    for (auto mean = due; mean != later; ++mean) now[i] = std::max(now[i], mean->second[i]);
    keeper.waited(step, i, begin, now[i]);
  }
}

// The events of a run, by sizes alone: what SimulatedNetwork does with payloads. Notes the time
// line and where the time went.
std::vector<Seconds> times_of(const Scenario& scenario, const std::vector<StepWire>& wires,
                              const std::vector<SimulatedPeer>& peers, RunResult& run) {
  Timekeeper keeper(run, latencies_of(peers));
  std::vector<Fifo> up;
  std::vector<Fifo> down;
  for (const SimulatedPeer& peer : peers) {
    up.emplace_back(peer.link.up, peer.link.latency);
    down.emplace_back(peer.link.down, peer.link.latency);
  }
  const auto delay = static_cast<std::size_t>(run.plan.delay_steps);
  std::vector<Seconds> now(peers.size());
  Arrivals arrived;
  std::vector<Seconds> times;
  for (std::size_t step = 0; step < wires.size(); ++step) {
    run.wire.emplace_back();
    for (std::size_t i = 0; i < now.size(); ++i) {
      const Seconds begin = now[i];
      now[i] += scenario.replicas[i].step_time;
      keeper.computed(step, i, begin, now[i]);
    }
    const auto closed = send_up(step, wires[step], now, up, keeper);
    for (const auto& [part, wire] : wires[step]) {
      const RoundId round{.step = step, .part = part};
      for (std::size_t i = 0; i < now.size(); ++i)
        arrived[round].push_back(send({.replica = i,
                                       .is_up = false,
                                       .round = round,
                                       .begin = closed.at(part),
                                       .bytes = static_cast<std::size_t>(wire.down[i])},
                                      down, keeper));
    }
    if (step >= delay && !wires[step - delay].empty())
      await_means(step, step - delay, arrived, now, keeper);
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
  if (find_recipe(recipe_name(run.recipe))->is_by_layer)
    return cannot(run, "its layers travel on their own; run it again");
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
