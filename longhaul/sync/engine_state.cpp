// The engine's checkpoints and snapshots.
#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/state.h"
#include "longhaul/sync/engine.h"
#include "longhaul/sync/saved.h"

namespace longhaul {
namespace {

// Far beyond every run, and far below where sums of steps overflow.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 48U;
constexpr std::string_view kPosition = "position";  // the parameters, of rules with local steps

std::string_view kind_of(Extent extent) {
  return extent == Extent::kReplica ? "checkpoint" : "snapshot";
}

Error mismatch(std::string what) { return {ErrorCode::kMismatch, std::move(what)}; }

bool is_late_or_ahead(Merge merge) { return merge == Merge::kLate || merge == Merge::kAhead; }

Result<Plan> read_plan(const std::string& name, const State& state, const EngineSetup& setup) {
  Result<Plan> plan = load_plan(name, state);
  if (!plan.ok()) return plan;
  Status checked = check_plan(*plan, setup);
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

std::string codec_name(std::size_t fragment) {
  return fragment == 0 ? "codec" : "codec." + std::to_string(fragment);
}

struct Position {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> next_rounds;  // by fragment
  bool is_half_done = false;
  std::deque<RoundId> in_flight;
};

// Rounds are merged in the order they were born in.
Result<std::deque<RoundId>> read_in_flight(const State& state, std::size_t fragments) {
  const auto steps = state.value<std::vector<std::uint64_t>>("in_flight");
  const auto parts = state.value<std::vector<std::uint64_t>>("in_flight_parts");
  if (!steps.ok()) return steps.error();
  if (!parts.ok()) return parts.error();
  if (parts->size() != steps->size()) return mismatch("in_flight_parts: not one for each round");
  std::deque<RoundId> rounds;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    if ((*parts)[i] >= fragments)
      return mismatch("in_flight_parts: of another number of fragments");
    const RoundId round{.step = (*steps)[i], .part = static_cast<std::uint32_t>((*parts)[i])};
    if (!rounds.empty() && round <= rounds.back()) return mismatch("in_flight: not in order");
    rounds.push_back(round);
  }
  return rounds;
}

// Once the first half of a step is done its rounds are in flight, or merged after all that are
// older.
bool has_rounds_of_step(const Position& position) {
  const std::deque<RoundId>& in_flight = position.in_flight;
  for (std::uint32_t part = 0; part < position.next_rounds.size(); ++part) {
    const RoundId round{.step = position.step, .part = part};
    if (position.next_rounds[part] != position.step || in_flight.empty()) continue;
    if (in_flight.front() <= round && !std::ranges::binary_search(in_flight, round)) return false;
  }
  return true;
}

Result<Position> read_position(const State& state, std::size_t fragments) {
  const auto step = state.value<std::uint64_t>("step");
  const Result<std::deque<RoundId>> in_flight = read_in_flight(state, fragments);
  const auto next_rounds = state.value<std::vector<std::uint64_t>>("next_rounds");
  const auto halves_done = state.value<std::uint64_t>("halves_done");  // of the step
  if (!step.ok()) return step.error();
  if (!in_flight.ok()) return in_flight.error();
  if (!next_rounds.ok()) return next_rounds.error();
  if (!halves_done.ok()) return halves_done.error();
  if (*step > kMostSteps) return mismatch("step: absurd");
  if (*halves_done > 1) return mismatch("halves_done: more than one");
  const std::uint64_t open = *step + *halves_done;  // what was born is born before it
  if (next_rounds->size() != fragments) return mismatch("next_rounds: not one for each fragment");
  for (const std::uint64_t next : *next_rounds) {
    if (next < *step || next >= *step + kMostPeriodSteps)
      return mismatch("next_rounds: not in the period of the step");
  }
  if (!in_flight->empty() && in_flight->back().step >= open)
    return mismatch("in_flight: not up to the step");
  Position position{.step = *step,
                    .next_rounds = *next_rounds,
                    .is_half_done = *halves_done == 1,
                    .in_flight = *in_flight};
  if (position.is_half_done && !has_rounds_of_step(position))
    return mismatch("in_flight: without the round of the step");
  return position;
}

}  // namespace

Status check_plan(const Plan& plan, const EngineSetup& setup) {
  Status within_limits = check_plan_limits(plan, setup.replicas);
  if (!within_limits.ok()) return within_limits;
  if (setup.recipe.local.fragments > 1 && plan.period_steps != setup.recipe.plan.period_steps)
    return mismatch("period_steps of fragments: they do not change");
  const Merge own = setup.recipe.plan.merge;
  const bool can_change = is_late_or_ahead(plan.merge) && is_late_or_ahead(own);
  if (plan.merge != own && !can_change) {
    return mismatch("merge rule " + std::string(name_of(plan.merge)) + ", expected " +
                    std::string(name_of(own)));
  }
  const bool is_callers = setup.local_step == LocalStep::kCallers;
  if (is_callers && (plan.merge == Merge::kAhead || plan.merge == Merge::kOwnStep)) {
    return mismatch("merge rule " + std::string(name_of(plan.merge)) +
                    " needs Longhaul's own optimizer");
  }
  if (plan.merge == Merge::kAhead && !can_be_foreseen(setup.optimizer.kind))
    return mismatch("look-ahead with AdamW");
  if (plan.merge == Merge::kAhead && setup.final_average)
    return mismatch("look-ahead in a run that averages at the end");
  return Done{};
}

State Engine::save() const { return save(Extent::kReplica); }
State Engine::save_shared() const { return save(Extent::kShared); }

State Engine::save(Extent extent) const {
  State state;
  state.values = {{"version", kSavedVersion},
                  {"kind", kind_of(extent)},
                  {"step", step_},
                  {"halves_done", is_half_done_ ? 1U : 0U}};
  save_plan("plan", plan_, state);
  if (next_plan_) save_plan("next_plan", *next_plan_, state);
  std::vector<std::uint64_t> in_flight;
  std::vector<std::uint64_t> in_flight_parts;
  for (const RoundId& round : in_flight_) {
    in_flight.push_back(round.step);
    in_flight_parts.push_back(round.part);
  }
  state.values["in_flight"] = in_flight;
  state.values["in_flight_parts"] = in_flight_parts;
  std::vector<std::uint64_t> next_rounds;
  for (const Fragment& fragment : fragments_) next_rounds.push_back(fragment.next_round);
  state.values["next_rounds"] = next_rounds;
  save_tensor("shared", shared(), state);
  rule_->save(extent, state);
  if (extent == Extent::kReplica || !has_local_steps(plan_.merge)) optimizer_->save(state);
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (extent == Extent::kReplica || fragments_[i].codec->shares_state())
      save_tensor(codec_name(i), fragments_[i].codec->state(), state);
  }
  if (extent == Extent::kShared) return state;
  if (has_local_steps(plan_.merge)) save_tensor(kPosition, parameters_, state);
  state.values["non_finite_steps"] = non_finite_steps_;
  state.values["non_finite_in_a_row"] = non_finite_in_a_row_;
  return state;
}

// All that a state says, checked, before anything of the engine changes.
struct Engine::Loaded {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> next_rounds;
  bool is_half_done = false;
  std::deque<RoundId> in_flight;
  Plan plan;
  std::optional<Plan> next_plan;
  std::vector<float> shared;
  std::vector<float> position;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<MergeRule> rule;
  std::vector<std::vector<float>> codecs;  // by fragment; empty: it starts afresh
  // Of a checkpoint only.
  std::uint64_t non_finite_steps = 0;
  std::uint64_t non_finite_in_a_row = 0;
};

Result<Engine::Loaded> Engine::read_shared(const State& state) const {
  const Result<Position> position = read_position(state, fragments_.size());
  if (!position.ok()) return position.error();
  const Result<Plan> plan = read_plan("plan", state, setup_);
  if (!plan.ok()) return plan.error();
  Loaded loaded{.step = position->step,
                .next_rounds = position->next_rounds,
                .is_half_done = position->is_half_done,
                .in_flight = position->in_flight,
                .plan = *plan};
  if (state.values.contains("next_plan.merge")) {
    const Result<Plan> next = read_plan("next_plan", state, setup_);
    if (!next.ok()) return next.error();
    loaded.next_plan = *next;
  }
  loaded.shared.resize(parameters_.size());
  Status shared_loaded = load_tensor("shared", state, loaded.shared);
  if (!shared_loaded.ok()) return std::move(shared_loaded).error();
  loaded.position = loaded.shared;
  return loaded;
}

// Those of a snapshot only where all replicas have the same.
Status Engine::read_codecs(Extent extent, const State& state, Loaded& loaded) const {
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    Codec& codec = *fragments_[i].codec;
    std::vector<float>& read = loaded.codecs.emplace_back();
    if (extent == Extent::kShared && !codec.shares_state()) continue;
    read.resize(codec.state().size());
    Status codec_loaded = load_tensor(codec_name(i), state, read);
    if (!codec_loaded.ok()) return codec_loaded;
  }
  return Done{};
}

Status Engine::read_own(const State& state, Loaded& loaded) {
  Status position =
      has_local_steps(loaded.plan.merge) ? load_tensor(kPosition, state, loaded.position) : Done{};
  if (!position.ok()) return position;
  const auto steps = state.value<std::uint64_t>("non_finite_steps");
  const auto in_a_row = state.value<std::uint64_t>("non_finite_in_a_row");
  if (!steps.ok()) return steps.error();
  if (!in_a_row.ok()) return in_a_row.error();
  loaded.non_finite_steps = *steps;
  loaded.non_finite_in_a_row = *in_a_row;
  return Done{};
}

Result<Engine::Loaded> Engine::read(Extent extent, const State& state) const {
  Status kind = check_kind(extent, state);
  if (!kind.ok()) return std::move(kind).error();
  Result<Loaded> loaded = read_shared(state);
  if (!loaded.ok()) return loaded;
  loaded->optimizer = make_optimizer();
  if (extent == Extent::kReplica || !has_local_steps(loaded->plan.merge)) {
    Status optimizer = loaded->optimizer->load(state);
    if (!optimizer.ok()) return std::move(optimizer).error();
  }
  loaded->rule = make_merge_rule(rule_setup(loaded->plan.merge), loaded->shared, parameters_,
                                 *loaded->optimizer, workers_);
  const std::deque<RoundId>& rounds = loaded->in_flight;
  Status rule = loaded->rule->load(extent, state, std::vector(rounds.begin(), rounds.end()));
  if (!rule.ok()) return std::move(rule).error();
  Status codecs = read_codecs(extent, state, *loaded);
  if (!codecs.ok()) return std::move(codecs).error();
  Status own = extent == Extent::kReplica ? read_own(state, *loaded) : Done{};
  if (!own.ok()) return std::move(own).error();
  return loaded;
}

Status Engine::load(Extent extent, const State& state) {
  Result<Loaded> loaded = read(extent, state);
  if (!loaded.ok()) return std::move(loaded).error().within(kind_of(extent));
  rule_ = std::move(loaded->rule);
  optimizer_ = std::move(loaded->optimizer);
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    fragments_[i].next_round = loaded->next_rounds[i];
    std::ranges::copy(loaded->codecs[i], fragments_[i].codec->state().begin());
  }
  plan_ = loaded->plan;
  next_plan_ = loaded->next_plan;
  in_flight_ = std::move(loaded->in_flight);
  step_ = loaded->step;
  is_half_done_ = loaded->is_half_done;
  non_finite_steps_ = loaded->non_finite_steps;
  non_finite_in_a_row_ = loaded->non_finite_in_a_row;
  std::ranges::copy(loaded->position, parameters_.begin());
  if (setup_.computes) rule_->place(now());
  return Done{};
}

Status Engine::load(const State& state) { return load(Extent::kReplica, state); }
Status Engine::load_shared(const State& state) { return load(Extent::kShared, state); }

}  // namespace longhaul
