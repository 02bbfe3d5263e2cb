// The runs of one recipe with one setting, over seeds: medians with the spread beside them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/job/scenario.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// The median of a figure over seeds, with its least and its most.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// Nothing where there are no values.
std::optional<Spread> spread_of(std::vector<double> values);

// The runs of one recipe with one setting, over seeds.
struct Summary {
  std::string recipe;
  std::string settings;
  std::vector<std::size_t> runs;  // indices into what was summarised
  std::size_t reached = 0;        // runs that reached the target
  std::size_t diverged = 0;
  std::size_t interrupted = 0;
  // Median where most runs reached the target: those that did not count as later than all others.
  std::optional<Spread> time_to_target_s;
  std::optional<Spread> steps_to_target;
  std::optional<double>
      best_value;  // best mean of three evaluations, which is what the target asks
  std::optional<Spread> final_loss;
  std::optional<Spread> final_accuracy;
  std::optional<Spread> step_time_s;
  std::optional<Spread> efficiency;
  std::optional<Spread>
      computing;  // mean share over replicas; of the slowest where that is unknown
  std::optional<Spread> bytes_up;
  std::optional<Spread> bytes_down;
  bool is_best = true;  // of the recipe's settings in a search
};

// In the order of first appearance.
std::vector<Summary> summarise(const TargetOptions& target, const std::vector<RunResult>& runs);

// How much sooner than `d-sgd` the target was reached; nothing where either did not.
std::optional<double> speed_up(const Summary& of, const std::vector<Summary>& all);

// "41.2s", "10min 59s", "3h 5min"; "never" for what is not finite.
std::string time_text(double seconds);

// For people: "41.2s", "not reached (best accuracy 0.843)", "41.2s (39.8s to 44s)".
std::string target_text(const Summary& summary, const TargetOptions& target);

// The closing table of `lab`, plain text.
std::string summary_table(const Scenario& scenario, const std::vector<RunResult>& runs);

}  // namespace longhaul::lab
