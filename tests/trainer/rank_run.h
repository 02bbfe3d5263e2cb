// Ranks of a collective as threads: each an engine and a learner of 257 parameters.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/sync/learner_step.h"
#include "tests/sync/random_runs.h"
#include "tests/trainer/threads_gather.h"
#include "trainer/collective.h"

namespace longhaul::testing {

using trainer::Collective;
using trainer::CollectiveOptions;

inline const std::vector<float> kRankWeights{1.0F, 2.5F, 0.5F};
inline constexpr std::uint64_t kRankSteps = 24;

// Another time on every rank, and every look at it takes a while.
class UnevenClock final : public Clock {
 public:
  explicit UnevenClock(std::size_t rank) : tick_us_(50 + 37 * static_cast<int>(rank)) {}
  [[nodiscard]] TimePoint now() const override {
    return TimePoint{} + std::chrono::microseconds(tick_us_ * ++looks_);
  }

 private:
  int tick_us_;
  mutable std::atomic<int> looks_{1};
};

// Unequal where there are three ranks.
inline std::vector<float> weights_for(const EngineOptions& options) {
  return options.replicas == kRankWeights.size() ? kRankWeights
                                                 : std::vector<float>(options.replicas, 1.0F);
}

inline EngineOptions setup_for(const Recipe& recipe) {
  std::mt19937_64 random(recipe.name.size());
  EngineOptions options = random_run_options(recipe, random);
  options.replicas = kRankWeights.size();
  return options;
}

struct RankResult {
  std::uint64_t parameters = 0;
  std::uint64_t shared = 0;
  std::uint64_t residual = 0;
  std::vector<Plan> plans;
  bool operator==(const RankResult&) const = default;
};

inline RankResult result_of(Learner& learner, const Engine& engine) {
  return {.parameters = digest_of(learner.parameters()),
          .shared = digest_of(engine.shared()),
          .residual = digest_of(engine.residual())};
}

// One rank of a run: engine and learner over a collective.
class RankRun {
 public:
  RankRun(EngineOptions options, std::size_t rank, ThreadsGather& ranks,
          const State* from = nullptr)
      : clock_(rank) {
    options.slot = rank;
    QuadraticWorkload workload(kRunElements);
    learner_ = workload.make_learner(rank);
    Result<std::unique_ptr<Collective>> made =
        Collective::start({.engine = options,
                           .elements = kRunElements,
                           .weights = weights_for(options),
                           .steps = kRankSteps,
                           .computing = Seconds(0.01)},
                          ranks.of(rank), clock_,
                          options.averages_in_place ? ranks.sum_of(rank) : trainer::AllReduce());
    LONGHAUL_CHECK(made.ok());
    collective_ = std::move(made).value();
    options.recipe.plan = *collective_->first_plan(Deadline::max()).value();
    engine_ = std::make_unique<Engine>(options, learner_->parameters(), *collective_, workers_);
    if (from == nullptr) return;
    LONGHAUL_CHECK(engine_->load(*from).ok() && learner_->load(*from).ok() &&
                   collective_->load(*from).ok());
  }

  void run_until(std::uint64_t step) {
    while (engine_->steps_done() < step) {
      compute_and_submit(*learner_, *engine_);
      LONGHAUL_CHECK(engine_->end_step().ok());
      collective_->report({.computing = Seconds(0.004 * static_cast<double>(step % 3 + 1))});
      kept_by_all.push_back(collective_->kept_by_all());
      common_time.push_back(collective_->common_time().count());
      for (const auto& [round, decision] : collective_->take_decisions())
        plans_.push_back(decision.plan);
    }
  }

  State save() {
    for (const RoundId& round : engine_->in_flight())
      LONGHAUL_CHECK(collective_->await(round, Deadline::max()).ok());
    State state = engine_->save();
    learner_->save(state);
    collective_->save(state);
    return state;
  }

  RankResult finish() {
    LONGHAUL_CHECK(engine_->drain().ok());
    RankResult result = result_of(*learner_, *engine_);
    result.plans = plans_;
    return result;
  }

  [[nodiscard]] Collective& collective() { return *collective_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] Learner& learner() { return *learner_; }
  std::vector<std::uint64_t> kept_by_all;
  std::vector<double> common_time;

 private:
  UnevenClock clock_;
  Workers workers_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Collective> collective_;
  std::unique_ptr<Engine> engine_;
  std::vector<Plan> plans_;
};

// A recipe by layer whose plan no planner moves: some parts have two rounds in a period.
inline Recipe with_fixed_schedule(std::string_view name, int delay_steps = 0) {
  Recipe recipe = with_short_periods(find_recipe(name).value());
  recipe.planner = PlannerKind::kNone;
  recipe.plan.delay_steps = delay_steps;
  std::mt19937_64 random(name.size());
  const std::size_t parts = parts_of(setup_for(recipe), kRunElements).size();
  do {
    recipe.plan.schedule = random_schedule(recipe.plan, static_cast<std::uint32_t>(parts), random);
  } while (recipe.plan.schedule.empty());
  return recipe;
}

inline void on_all_ranks(const std::function<void(std::size_t)>& what,
                         std::size_t ranks = kRankWeights.size()) {
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&what, rank] { what(rank); });
}

inline std::vector<RankResult> run_all(const EngineOptions& options) {
  ThreadsGather gather(options.replicas);
  std::vector<RankResult> results(options.replicas);
  on_all_ranks(
      [&](std::size_t rank) {
        RankRun run(options, rank, gather);
        run.run_until(kRankSteps);
        results[rank] = run.finish();
      },
      options.replicas);
  return results;
}

}  // namespace longhaul::testing
