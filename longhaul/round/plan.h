// The knobs that a recipe sets and a planner may move: what all members of a round agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul {

struct State;

// The fate of a mean when it is due.
enum class Merge : std::uint8_t {
  kOptimizer,  // the optimizer takes a step with it
  kOwnStep,    // the replica stepped with its own gradient at once; the mean takes that one's place
               // (DGA)
  kLate,       // the replica's own optimizer stepped at once, and what it moved was sent; the mean
               // takes that one's place (the late correction)
  kAhead,   // the optimizer takes a step with it, and gradients are computed where that will lead
            // (the look-ahead)
  kOuter,   // an optimizer of the shared model steps with it (DiLoCo)
  kAnchor,  // it moves an anchor, towards which the replica is pulled (Overlap-Local-SGD)
};

// Can a replica take several steps of its own between two updates with it?
constexpr bool has_local_steps(Merge merge) {
  return merge == Merge::kLate || merge == Merge::kOuter || merge == Merge::kAnchor;
}

std::string_view name_of(Merge merge);
std::vector<std::string> merge_names();
Result<Merge> parse_merge(std::string_view name);

// Keep ratio, delay, period and schedule of a run, for a time.
struct Plan {
  double keep_ratio = 1.0;  // δ: share of the elements that is sent
  int delay_steps =
      0;  // τ: a mean is merged this many steps after the step its updates were born in
  // H: an update is the delta of this many steps; above 1 only where has_local_steps().
  int period_steps = 1;
  Merge merge = Merge::kOptimizer;
  // The keep ratio of each replica, by slot; empty: all have keep_ratio.
  std::vector<double> keep_ratios;
  // The parts that have a round in each step of a period, in ascending order. A part may have
  // several rounds in a period. The last step has at least one, so a period is over with its last
  // round. Empty: each part has one round, spread evenly; see parts_in_step().
  std::vector<std::vector<std::uint32_t>> schedule;

  [[nodiscard]] double keep_ratio_of(std::size_t slot) const {
    return keep_ratios.empty() ? keep_ratio : keep_ratios.at(slot);
  }

  bool operator==(const Plan&) const = default;
};

// The limits of every plan, wherever it comes from: a recipe, a peer, a file.
inline constexpr int kMostDelaySteps = 10'000;
inline constexpr int kMostPeriodSteps = 10'000;
inline constexpr std::size_t kMostKeepRatios = 10'000;  // so that a checkpoint's header holds them
inline constexpr std::size_t kMostScheduledRounds = 10'000;  // for the same reason

// Refuses a plan outside of the limits, or with ratios for another number of replicas (0: their
// number is not known). Whether a plan fits a recipe is for check_plan() to say.
Status check_plan_limits(const Plan& plan, std::size_t replicas = 0);

// The parts of a model in `parts` parts that have a round in this step of a period, in ascending
// order. Everything that asks which rounds a step has asks here.
std::vector<std::uint32_t> parts_in_step(const Plan& plan, std::size_t parts,
                                         std::size_t step_of_period);

// A plan has four forms, and each has one writer and one reader. Proto: exchange/protocol.h. Every
// reader checks the limits.

// JSON: the keys of a plan in events, results and --json output.
nlohmann::ordered_json plan_json(const Plan& plan);
// Ignores keys that it does not know. Logs of older programs may lack period, keep ratios and
// schedule.
Result<Plan> plan_from_json(const nlohmann::ordered_json& object);

// State: the keys of the JSON form, each behind `name` and a dot. All must be there.
void save_plan(const std::string& name, const Plan& plan, State& state);
Result<Plan> load_plan(const std::string& name, const State& state);

// One knob of a plan as text, as tables show it.
struct PlanCell {
  std::string name;    // "delay"
  std::string symbol;  // "τ"; empty: none is in use
  std::string value;   // "3"
  std::string unit;    // "steps"; empty: none
};
std::vector<PlanCell> plan_cells(const Plan& plan);
// "keep ratio 0.05, delay 3, period 1, merge late".
std::string plan_text(const Plan& plan);

}  // namespace longhaul
