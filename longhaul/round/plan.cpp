#include "longhaul/round/plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "longhaul/base/state.h"
#include "longhaul/base/units.h"

namespace longhaul {
namespace {

// In the order of Merge.
constexpr std::array<std::string_view, 6> kMergeNames{"optimizer", "own-step", "late",
                                                      "ahead",     "outer",    "anchor"};

Error refused(std::string why) { return {ErrorCode::kMismatch, std::move(why)}; }

bool is_ratio(double value) { return value > 0 && value <= 1; }

Error outside(const char* name, int value, int least, int most) {
  return refused(std::string(name) + ' ' + std::to_string(value) + ": expected " +
                 std::to_string(least) + " to " + std::to_string(most));
}

Error no_value(const std::string& key) { return refused("no value \"" + key + '"'); }

template <typename Json>
bool read_knob(const Json& json, double& out) {
  if (json.is_number()) json.get_to(out);
  return json.is_number();
}

// Numbers beyond int become its ends, which no limit allows.
template <typename Json>
bool read_knob(const Json& json, int& out) {
  using Limits = std::numeric_limits<int>;
  if (!json.is_number_integer()) return false;
  out = json.is_number_unsigned() ? static_cast<int>(std::min<std::uint64_t>(
                                        json.template get<std::uint64_t>(), Limits::max()))
                                  : static_cast<int>(std::max<std::int64_t>(
                                        json.template get<std::int64_t>(), Limits::min()));
  return true;
}

template <typename Json>
bool read_knob(const Json& json, std::uint32_t& out) {
  const bool fits = json.is_number_unsigned() &&
                    json.template get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
  if (fits) json.get_to(out);
  return fits;
}

template <typename Json>
bool read_knob(const Json& json, std::string& out) {
  if (json.is_string()) json.get_to(out);
  return json.is_string();
}

template <typename Json, typename T>
bool read_knob(const Json& json, std::vector<T>& out) {
  if (!json.is_array()) return false;
  out.resize(json.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!read_knob(json[i], out[i])) return false;
  }
  return true;
}

// Reads the knobs of a plan from the values whose keys begin with `prefix`. An error is the first
// fault.
template <typename Json>
Result<Plan> read_knobs(const Json& values, const std::string& prefix) {
  Status status = Done{};
  const auto read = [&](const char* name, auto& out) {  // if it is there
    const auto found = values.find(prefix + name);
    if (found == values.end() || !status.ok() || read_knob(*found, out)) return;
    status = refused("no value of the right kind \"" + prefix + name + '"');
  };
  const auto require = [&](const char* name, auto& out) {
    if (status.ok() && !values.contains(prefix + name)) status = no_value(prefix + name);
    read(name, out);
  };
  Plan plan;
  std::string merge_name;
  require("keep_ratio", plan.keep_ratio);
  require("delay_steps", plan.delay_steps);
  read("period_steps", plan.period_steps);
  read("keep_ratios", plan.keep_ratios);
  read("schedule", plan.schedule);
  require("merge", merge_name);
  if (!status.ok()) return status.error();
  plan.merge = LONGHAUL_TRY(parse_merge(merge_name));
  LONGHAUL_TRY(check_plan_limits(plan));
  return plan;
}

// "0.05", or "0.02 to 0.08" where replicas differ.
std::string ratio_text(const Plan& plan) {
  const auto text = [](double ratio) { return formatted("%.4g", ratio); };
  if (plan.keep_ratios.empty()) return text(plan.keep_ratio);
  const auto [least, most] = std::ranges::minmax(plan.keep_ratios);
  return least == most ? text(least) : text(least) + " to " + text(most);
}

std::size_t rounds_in(const Plan& plan) {
  std::size_t rounds = 0;
  for (const auto& parts : plan.schedule) rounds += parts.size();
  return rounds;
}

Status check_schedule(const Plan& plan) {
  if (plan.schedule.empty()) return Done{};
  if (plan.schedule.size() != static_cast<std::size_t>(plan.period_steps))
    return refused("schedule of " + std::to_string(plan.schedule.size()) +
                   " steps: expected period_steps, " + std::to_string(plan.period_steps));
  const auto is_ascending = [](const std::vector<std::uint32_t>& parts) {
    return std::ranges::adjacent_find(parts, std::greater_equal<>()) == parts.end();
  };
  if (!std::ranges::all_of(plan.schedule, is_ascending))
    return refused("schedule: the parts of a step are not in ascending order");
  if (plan.schedule.back().empty())
    return refused("schedule: no round in the last step of the period");
  if (rounds_in(plan) > kMostScheduledRounds)
    return refused("schedule of " + std::to_string(rounds_in(plan)) + " rounds: expected at most " +
                   std::to_string(kMostScheduledRounds));
  return Done{};
}

PlanCell cell_of_steps(const char* name, const char* symbol, int steps) {
  return {.name = name,
          .symbol = symbol,
          .value = std::to_string(steps),
          .unit = steps == 1 ? "step" : "steps"};
}

}  // namespace

std::string_view name_of(Merge merge) { return kMergeNames.at(static_cast<std::size_t>(merge)); }

std::vector<std::string> merge_names() { return {kMergeNames.begin(), kMergeNames.end()}; }

Result<Merge> parse_merge(std::string_view name) {
  const auto* const found = std::ranges::find(kMergeNames, name);
  if (found == kMergeNames.end())
    return Error{ErrorCode::kInvalidArgument, "no merge rule " + std::string(name)};
  return Merge{static_cast<std::uint8_t>(found - kMergeNames.begin())};
}

Status check_plan_limits(const Plan& plan, std::size_t replicas) {
  if (!is_ratio(plan.keep_ratio)) return refused("keep_ratio outside (0, 1]");
  if (!std::ranges::all_of(plan.keep_ratios, is_ratio))
    return refused("keep_ratios outside (0, 1]");
  const std::size_t ratios = plan.keep_ratios.size();
  if (ratios > kMostKeepRatios || (ratios > 0 && replicas > 0 && ratios != replicas))
    return refused(
        "keep_ratios of " + std::to_string(ratios) + " replicas: expected " +
        (replicas > 0 ? std::to_string(replicas) : "at most " + std::to_string(kMostKeepRatios)));
  if (plan.delay_steps < 0 || plan.delay_steps > kMostDelaySteps)
    return outside("delay_steps", plan.delay_steps, 0, kMostDelaySteps);
  if (plan.period_steps < 1 || plan.period_steps > kMostPeriodSteps)
    return outside("period_steps", plan.period_steps, 1, kMostPeriodSteps);
  if (plan.period_steps > 1 && !has_local_steps(plan.merge))
    return refused("period_steps above 1 needs local steps, which merge = " +
                   std::string(name_of(plan.merge)) + " has not");
  return check_schedule(plan);
}

std::vector<std::uint32_t> parts_in_step(const Plan& plan, std::size_t parts,
                                         std::size_t step_of_period) {
  if (!plan.schedule.empty()) return plan.schedule.at(step_of_period);
  const auto period = static_cast<std::size_t>(plan.period_steps);
  std::vector<std::uint32_t> scheduled;
  for (std::size_t part = 0; part < parts; ++part) {
    if (std::max<std::size_t>((part + 1) * period / parts, 1) - 1 == step_of_period)
      scheduled.push_back(static_cast<std::uint32_t>(part));
  }
  return scheduled;
}

nlohmann::ordered_json plan_json(const Plan& plan) {
  return {{"keep_ratio", plan.keep_ratio},     {"delay_steps", plan.delay_steps},
          {"period_steps", plan.period_steps}, {"merge", name_of(plan.merge)},
          {"keep_ratios", plan.keep_ratios},   {"schedule", plan.schedule}};
}

Result<Plan> plan_from_json(const nlohmann::ordered_json& object) {
  Result<Plan> plan = read_knobs(object, "");
  if (!plan.ok()) return std::move(plan).error().within("plan");
  return plan;
}

void save_plan(const std::string& name, const Plan& plan, State& state) {
  const nlohmann::ordered_json knobs = plan_json(plan);
  const std::string prefix = name + '.';
  for (const auto& [key, value] : knobs.items())
    state.values[std::string(prefix).append(key)] = value;
}

Result<Plan> load_plan(const std::string& name, const State& state) {
  const nlohmann::ordered_json knobs = plan_json(Plan{});
  const std::string prefix = name + '.';
  for (const auto& [key, value] : knobs.items()) {
    const std::string full = std::string(prefix).append(key);
    if (!state.values.contains(full)) return no_value(full);
  }
  Result<Plan> plan = read_knobs(state.values, prefix);
  if (!plan.ok()) return std::move(plan).error().within(name);
  return plan;
}

std::vector<PlanCell> plan_cells(const Plan& plan) {
  return {{.name = "keep ratio", .symbol = "δ", .value = ratio_text(plan)},
          cell_of_steps("delay", "τ", plan.delay_steps),
          cell_of_steps("period", "H", plan.period_steps),
          {.name = "merge",
           .value = std::string(name_of(plan.merge)) +
                    (plan.schedule.empty()
                         ? ""
                         : " in " + std::to_string(rounds_in(plan)) + " scheduled rounds")}};
}

std::string plan_text(const Plan& plan) {
  std::string text;
  for (const PlanCell& cell : plan_cells(plan))
    text += (text.empty() ? "" : ", ") + cell.name + ' ' + cell.value;
  return text;
}

}  // namespace longhaul
