// Runs one recipe of a scenario on the virtual clock: real gradients, modelled links, the same bits
// for every thread count.
#pragma once

#include <functional>
#include <string>

#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/base/workers.h"
#include "longhaul/job/scenario.h"
#include "longhaul/lab/results.h"
#include "longhaul/sync/learner.h"

namespace longhaul::lab {

// One run of the lab: its recipe, its seed, its callbacks.
struct RunOptions {
  std::string recipe;  // "dd-ef-sgd:delay_steps=3"
  std::uint64_t seed = 1;
  // Called after every step; returning false ends the run early (Ctrl-C).
  std::function<bool(std::size_t steps_done, std::size_t steps)> progress;
  // Gets a checkpoint every so many steps (0: never) and when the run ends early; only of fixed
  // plans: a planner's memory is not saved.
  std::function<void(const State& checkpoint)> save;
  std::size_t save_every = 0;
  const State* resume = nullptr;  // a checkpoint to go on from
};

// `workload` was made for this scenario and seed; `workers` share the replicas' gradients among
// them.
Result<RunResult> run(const Scenario& scenario, const RunOptions& request, Workload& workload,
                      Workers& workers);

}  // namespace longhaul::lab
