#include "longhaul/lab/oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>

#include "longhaul/base/units.h"

namespace longhaul::lab {
namespace {

constexpr std::array kRatios{"0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3"};
constexpr std::array kDelays{"1", "2", "3", "4", "6", "8", "12"};
constexpr const char* kFixed = "static:";

Judged judge(const std::string& recipe, const std::vector<RunResult>& runs,
             const std::set<std::uint64_t>& seeds) {
  double sum = 0;
  std::set<std::uint64_t> reached;
  for (const RunResult& run : runs) {
    if (run.recipe != recipe || !run.time_to_target || !seeds.contains(run.seed)) continue;
    if (reached.insert(run.seed).second) sum += run.time_to_target->count();
  }
  Judged judged{.recipe = recipe};
  if (!seeds.empty() && reached == seeds) judged.time_s = sum / static_cast<double>(seeds.size());
  return judged;
}

std::string line_of(const Judged& judged, const std::string& name) {
  return name + ": " + (judged.time_s ? to_string(Seconds(*judged.time_s)) : "not reached");
}

}  // namespace

std::vector<std::string> fixed_plans() {
  std::vector<std::string> all;
  all.reserve(kRatios.size() * kDelays.size());
  for (const char* ratio : kRatios) {
    for (const char* delay : kDelays)
      all.push_back(std::string(kFixed) + "keep_ratio=" + ratio + ":delay_steps=" + delay);
  }
  return all;
}

bool is_fixed_plan(const std::string& recipe) { return recipe.starts_with(kFixed); }

std::optional<double> Verdict::regret(const Judged& of) const {
  if (!of.time_s || !best_fixed.time_s) return std::nullopt;
  return *of.time_s / *best_fixed.time_s - 1;
}

Verdict verdict_of(const std::vector<RunResult>& runs) {
  std::set<std::uint64_t> seeds;
  std::vector<std::string> recipes;  // in the order of their first run
  for (const RunResult& run : runs) {
    if (run.recipe == kClairvoyant) seeds.insert(run.seed);
    if (std::ranges::find(recipes, run.recipe) == recipes.end()) recipes.push_back(run.recipe);
  }
  Verdict verdict;
  for (const std::string& recipe : recipes) {
    const Judged judged = judge(recipe, runs, seeds);
    std::optional<double>& least = verdict.best_fixed.time_s;
    if (recipe == kClairvoyant) {
      verdict.clairvoyant = judged;
    } else if (!is_fixed_plan(recipe)) {
      verdict.judged.push_back(judged);
    } else {
      verdict.fixed.push_back(judged);
      if (judged.time_s && (!least || *judged.time_s < *least)) verdict.best_fixed = judged;
    }
  }
  return verdict;
}

std::string verdict_text(const Verdict& verdict) {
  std::string text = "In hindsight, mean over seeds:\n  " +
                     line_of(verdict.best_fixed, "best fixed plan") +
                     (verdict.best_fixed.time_s ? " (" + verdict.best_fixed.recipe + ")" : "") +
                     "\n  " + line_of(verdict.clairvoyant, kClairvoyant) + '\n';
  for (const Judged& judged : verdict.judged) {
    text += "  " + line_of(judged, judged.recipe);
    if (const std::optional<double> regret = verdict.regret(judged)) {
      std::array<char, 64> share{};
      (void)std::snprintf(share.data(), share.size(), ", %.1f %% %s than the best fixed plan",
                          100 * std::abs(*regret), *regret > 0 ? "later" : "sooner");
      text += share.data();
    }
    text += '\n';
  }
  return text;
}

}  // namespace longhaul::lab
