// The engine's checkpoints and snapshots.
#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/state.h"
#include "longhaul/exchange/saved.h"
#include "longhaul/sync/engine.h"

namespace longhaul {

// All that a state says, checked, before anything of the engine changes.
struct EngineState {
  std::uint64_t step = 0;
  std::uint64_t period_start = 0;
  Plan period_plan;
  std::vector<Part> parts;
  bool merges_all = false;
  std::vector<bool> is_ready;  // by part
  std::deque<RoundId> in_flight;
  Plan plan;
  std::optional<Plan> next_plan;
  RoundId next_plan_round;
  std::vector<float> shared;
  std::vector<float> parameters;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<MergeRule> rule;
  std::vector<std::unique_ptr<Codec>> codecs;  // by part
  // Of a checkpoint only.
  std::uint64_t non_finite_steps = 0;
  std::uint64_t non_finite_in_a_row = 0;
  bool is_step_unusable = false;
  std::vector<double> squares;
  double norm_before = 0;
};

namespace {

// Far beyond every run, and far below where sums of steps overflow.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 48U;
constexpr std::string_view kPosition = "position";  // the parameters, of rules with local steps
constexpr const char* kMergesAll = "merges_all";    // only if so

std::string_view kind_of(Extent extent) {
  return extent == Extent::kReplica ? "checkpoint" : "snapshot";
}

Error mismatch(std::string what) { return {ErrorCode::kMismatch, std::move(what)}; }

Result<Plan> read_plan(const std::string& name, const State& state, const EngineOptions& options) {
  Plan plan = LONGHAUL_TRY(load_plan(name, state));
  Status checked = check_plan(plan, options);
  if (!checked.ok()) return std::move(checked).error().within(name);
  return plan;
}

Status check_kind(Extent extent, const State& state) {
  const Status version = check_saved_version(state);
  const auto kind = state.value<std::string>("kind");
  if (!version.ok()) return version.error();
  if (!kind.ok()) return kind.error();
  if (*kind != kind_of(extent)) return mismatch("this is a " + *kind);
  return Done{};
}

std::string codec_name(std::size_t part) {
  return part == 0 ? "codec" : "codec." + std::to_string(part);
}

// Rounds are merged in the order they were born in.
Result<std::deque<RoundId>> read_in_flight(const State& state, std::size_t model_parts) {
  const auto steps = state.value<std::vector<std::uint64_t>>("in_flight");
  const auto parts = state.value<std::vector<std::uint64_t>>("in_flight_parts");
  if (!steps.ok()) return steps.error();
  if (!parts.ok()) return parts.error();
  if (parts->size() != steps->size()) return mismatch("in_flight_parts: not one for each round");
  std::deque<RoundId> rounds;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    if ((*parts)[i] >= model_parts) return mismatch("in_flight_parts: of another number of parts");
    const RoundId round{.step = (*steps)[i], .part = static_cast<std::uint32_t>((*parts)[i])};
    if (!rounds.empty() && round <= rounds.back()) return mismatch("in_flight: not in order");
    rounds.push_back(round);
  }
  return rounds;
}

// Once a part is ready its round of the step is in flight, or merged after all that are older.
bool has_rounds_of_step(const EngineState& read) {
  const std::size_t parts = read.is_ready.size();
  for (const std::uint32_t part :
       parts_in_step(read.period_plan, parts, read.step - read.period_start)) {
    const bool is_in_flight =
        std::ranges::binary_search(read.in_flight, RoundId{.step = read.step, .part = part});
    if (!read.is_ready[part] || is_in_flight) continue;
    if (std::ranges::find(read.in_flight, part, &RoundId::part) != read.in_flight.end())
      return false;
  }
  return true;
}

// A round in flight was submitted, in this step only if its part is ready.
bool is_born(const RoundId& round, const EngineState& read) {
  return round.step < read.step || (round.step == read.step && read.is_ready[round.part]);
}

Result<std::vector<bool>> read_ready(const State& state, std::size_t parts) {
  const auto ready = LONGHAUL_TRY(state.value<std::vector<std::uint64_t>>("ready"));
  std::vector<bool> is_ready(parts);
  for (const std::uint64_t part : ready) {
    if (part >= parts || is_ready[part]) return mismatch("ready: not parts of the model");
    is_ready[part] = true;
  }
  return is_ready;
}

// The model has the parts of the period's plan.
Status read_period(const State& state, EngineOptions options, std::size_t elements,
                   EngineState& read) {
  read.period_plan = LONGHAUL_TRY(read_plan("period_plan", state, options));
  options.recipe.plan.schedule = read.period_plan.schedule;
  read.parts = parts_of(options, elements);
  for (const auto& step : read.period_plan.schedule) {
    if (!step.empty() && step.back() >= read.parts.size())
      return mismatch("period_plan: a schedule of another number of parts");
  }
  return Done{};
}

Status check_period(const EngineState& read) {
  const auto steps = static_cast<std::uint64_t>(read.period_plan.period_steps);
  if (read.period_start > read.step || read.step - read.period_start >= steps)
    return mismatch("period_start: the step is not in the period");
  return Done{};
}

// Where a saved engine stands.
Result<EngineState> read_position(const State& state, const EngineOptions& options,
                                  std::size_t elements) {
  EngineState read;
  LONGHAUL_TRY(read_period(state, options, elements, read));
  const std::size_t parts = read.parts.size();
  const auto step = state.value<std::uint64_t>("step");
  const auto period_start = state.value<std::uint64_t>("period_start");
  const Result<std::deque<RoundId>> in_flight = read_in_flight(state, parts);
  const Result<std::vector<bool>> is_ready = read_ready(state, parts);
  if (!step.ok()) return step.error();
  if (!in_flight.ok()) return in_flight.error();
  if (!is_ready.ok()) return is_ready.error();
  if (!period_start.ok()) return period_start.error();
  if (*step > kMostSteps) return mismatch("step: absurd");
  read.step = *step;
  read.period_start = *period_start;
  read.is_ready = *is_ready;
  read.in_flight = *in_flight;
  const auto was_born = [&](const RoundId& round) { return is_born(round, read); };
  if (!std::ranges::all_of(read.in_flight, was_born))
    return mismatch("in_flight: not up to the step");
  LONGHAUL_TRY(check_period(read));
  if (!has_rounds_of_step(read)) return mismatch("in_flight: without the round of the step");
  return read;
}

// Reads the part of a checkpoint that a snapshot lacks.
Status read_own(const State& state, bool has_position, EngineState& loaded) {
  if (!has_position && state.tensors.contains(kPosition))
    return mismatch("of a run whose means are not formed in place");
  LONGHAUL_TRY(has_position ? load_tensor(kPosition, state, loaded.parameters) : Done{});
  const auto steps = state.value<std::uint64_t>("non_finite_steps");
  const auto in_a_row = state.value<std::uint64_t>("non_finite_in_a_row");
  if (!steps.ok()) return steps.error();
  if (!in_a_row.ok()) return in_a_row.error();
  loaded.non_finite_steps = *steps;
  loaded.non_finite_in_a_row = *in_a_row;
  const auto is_unusable = state.value<std::uint64_t>("unusable");
  const auto squares = state.value<std::vector<double>>("gradient_squares");
  const auto norm = state.value<double>("gradient_norm_before");
  if (!is_unusable.ok()) return is_unusable.error();
  if (!squares.ok()) return squares.error();
  if (!norm.ok()) return norm.error();
  if (squares->size() != loaded.squares.size())
    return mismatch("gradient_squares: not one for each part");
  loaded.is_step_unusable = *is_unusable > 0;
  loaded.squares = *squares;
  loaded.norm_before = *norm;
  return Done{};
}

}  // namespace

State Engine::save() const { return save(Extent::kReplica); }
State Engine::save_shared() const { return save(Extent::kShared); }

State Engine::save(Extent extent) const {
  LONGHAUL_CHECK(!options_.averages_in_place || in_flight_.empty());
  State state;
  std::vector<std::uint64_t> ready;
  for (std::size_t i = 0; i < is_ready_.size(); ++i) {
    if (is_ready_[i]) ready.push_back(i);
  }
  state.values = {
      {"version", kSavedVersion}, {"kind", kind_of(extent)}, {"step", step_}, {"ready", ready}};
  save_plan("plan", plan_, state);
  if (next_plan_) {
    save_plan("next_plan", *next_plan_, state);
    state.values["next_plan_round"] =
        std::vector<std::uint64_t>{next_plan_round_.step, next_plan_round_.part};
  }
  if (merges_all_) state.values[kMergesAll] = 1U;
  std::vector<std::uint64_t> in_flight;
  std::vector<std::uint64_t> in_flight_parts;
  for (const RoundId& round : in_flight_) {
    in_flight.push_back(round.step);
    in_flight_parts.push_back(round.part);
  }
  state.values["in_flight"] = in_flight;
  state.values["in_flight_parts"] = in_flight_parts;
  state.values["period_start"] = period_start_;
  save_plan("period_plan", period_plan_, state);
  save_tensor("shared", shared(), state);
  rule_->save(extent, state);
  if (extent == Extent::kReplica || !has_local_steps(plan_.merge)) optimizer_->save(state);
  for (std::size_t i = 0; i < codecs_.size(); ++i) {
    if (extent == Extent::kReplica || codecs_[i]->shares_state())
      save_tensor(codec_name(i), codecs_[i]->state(), state);
  }
  if (extent == Extent::kShared) return state;
  if (has_local_steps(plan_.merge) && !options_.averages_in_place)
    save_tensor(kPosition, parameters_, state);
  state.values["non_finite_steps"] = non_finite_steps_;
  state.values["non_finite_in_a_row"] = non_finite_in_a_row_;
  state.values["unusable"] = is_step_unusable_ ? 1U : 0U;  // steps, of this one
  state.values["gradient_squares"] = squares_;
  state.values["gradient_norm_before"] = norm_before_;
  return state;
}

Result<EngineState> Engine::read_shared(const State& state) const {
  EngineState loaded = LONGHAUL_TRY(read_position(state, options_, parameters_.size()));
  const std::size_t parts = loaded.parts.size();
  loaded.plan = LONGHAUL_TRY(read_plan("plan", state, options_));
  loaded.squares.resize(parts);
  if (state.values.contains("next_plan.merge")) {
    const Plan next = LONGHAUL_TRY(read_plan("next_plan", state, options_));
    const auto round = LONGHAUL_TRY(state.value<std::vector<std::uint64_t>>("next_plan_round"));
    if (round.size() != 2 || round.back() >= parts)
      return mismatch("next_plan_round: not a step and a part");
    loaded.next_plan = next;
    loaded.next_plan_round = {.step = round.front(),
                              .part = static_cast<std::uint32_t>(round.back())};
    loaded.merges_all = state.values.contains(kMergesAll);
  }
  loaded.shared.resize(parameters_.size());
  LONGHAUL_TRY(load_tensor("shared", state, loaded.shared));
  loaded.parameters = loaded.shared;
  return loaded;
}

// Those of a snapshot only where all replicas have the same.
Status Engine::read_codecs(Extent extent, const State& state, EngineState& loaded) const {
  loaded.codecs = make_codecs(loaded.parts);
  for (std::size_t i = 0; i < loaded.codecs.size(); ++i) {
    Codec& codec = *loaded.codecs[i];
    if (extent == Extent::kReplica || codec.shares_state())
      LONGHAUL_TRY(load_tensor(codec_name(i), state, codec.state()));
  }
  return Done{};
}

Result<EngineState> Engine::read(Extent extent, const State& state) const {
  LONGHAUL_TRY(check_kind(extent, state));
  EngineState loaded = LONGHAUL_TRY(read_shared(state));
  loaded.optimizer = make_optimizer();
  if (extent == Extent::kReplica || !has_local_steps(loaded.plan.merge)) {
    LONGHAUL_TRY(loaded.optimizer->load(state));
  }
  loaded.rule = make_merge_rule(options_with(loaded.period_plan, loaded.plan.merge), loaded.shared,
                                parameters_, *loaded.optimizer, workers_);
  const std::deque<RoundId>& rounds = loaded.in_flight;
  LONGHAUL_TRY(loaded.rule->load(extent, state, std::vector(rounds.begin(), rounds.end())));
  LONGHAUL_TRY(read_codecs(extent, state, loaded));
  const bool has_position = has_local_steps(loaded.plan.merge) && !options_.averages_in_place;
  LONGHAUL_TRY(extent == Extent::kReplica ? read_own(state, has_position, loaded) : Done{});
  return loaded;
}

Status Engine::load(Extent extent, const State& state) {
  Result<EngineState> loaded = read(extent, state);
  if (!loaded.ok()) return std::move(loaded).error().within(kind_of(extent));
  rule_ = std::move(loaded->rule);
  optimizer_ = std::move(loaded->optimizer);
  options_.recipe.plan.schedule = loaded->period_plan.schedule;
  parts_ = std::move(loaded->parts);
  codecs_ = std::move(loaded->codecs);
  plan_ = loaded->plan;
  next_plan_ = loaded->next_plan;
  next_plan_round_ = loaded->next_plan_round;
  merges_all_ = loaded->merges_all;
  in_flight_ = std::move(loaded->in_flight);
  step_ = loaded->step;
  is_ready_ = std::move(loaded->is_ready);
  period_start_ = loaded->period_start;
  period_plan_ = std::move(loaded->period_plan);
  find_next_round();
  non_finite_steps_ = loaded->non_finite_steps;
  non_finite_in_a_row_ = loaded->non_finite_in_a_row;
  is_step_unusable_ = loaded->is_step_unusable;
  squares_ = std::move(loaded->squares);
  norm_before_ = loaded->norm_before;
  std::ranges::copy(loaded->parameters, parameters_.begin());
  if (options_.computes) rule_->place(step_);
  return Done{};
}

Status Engine::load(const State& state) { return load(Extent::kReplica, state); }
Status Engine::load_shared(const State& state) { return load(Extent::kShared, state); }

}  // namespace longhaul
