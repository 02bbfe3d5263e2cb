// The choice of hindsight: the best fixed plan of a grid, and `auto` if it had known the links in
// advance.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/lab/results.h"

namespace longhaul::lab {

// The fixed plans among which hindsight chooses: late correction, ratios × delays.
std::vector<std::string> fixed_plans();
bool is_fixed_plan(const std::string& recipe);

// The planner that knows the links.
constexpr const char* kClairvoyant = "clairvoyant";

// A recipe and its time to the target.
struct Judged {
  std::string recipe;
  std::optional<double> time_s;  // to the target, mean over seeds; empty: not reached on all
};

// The recipes of a study beside the best fixed plan, in hindsight.
struct Verdict {
  Judged best_fixed;  // the recipe is empty where no fixed plan reached the target on all seeds
  Judged clairvoyant;
  std::vector<Judged> fixed;   // all fixed plans of the runs
  std::vector<Judged> judged;  // all other recipes of the runs

  // How much later than the best fixed plan, as a share of its time; nothing where either failed.
  [[nodiscard]] std::optional<double> regret(const Judged& of) const;
};

// Over the seeds of the clairvoyant's runs.
Verdict verdict_of(const std::vector<RunResult>& runs);

// A few lines for people.
std::string verdict_text(const Verdict& verdict);

}  // namespace longhaul::lab
