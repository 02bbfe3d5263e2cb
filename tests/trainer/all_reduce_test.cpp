// Means that are formed in place, with threads as ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/trainer/rank_run.h"

namespace longhaul::trainer {
namespace {

using longhaul::testing::Cluster;
using longhaul::testing::kRankSteps;
using longhaul::testing::kRankWeights;
using longhaul::testing::kRunElements;
using longhaul::testing::on_all_ranks;
using longhaul::testing::QuadraticWorkload;
using longhaul::testing::RankResult;
using longhaul::testing::RankRun;
using longhaul::testing::result_of;
using longhaul::testing::run_all;
using longhaul::testing::setup_for;
using longhaul::testing::test_name_of;
using longhaul::testing::ThreadsGather;
using longhaul::testing::with_fixed_schedule;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Floats = std::vector<float>;

EngineOptions in_place(const Recipe& recipe) {
  EngineOptions options = setup_for(recipe);
  options.averages_in_place = true;
  return options;
}

// The parameters of all ranks after so many steps.
std::vector<Floats> parameters_after(const EngineOptions& options, std::uint64_t steps) {
  ThreadsGather ranks(options.replicas);
  std::vector<Floats> all(options.replicas);
  on_all_ranks([&](std::size_t rank) {
    RankRun run(options, rank, ranks);
    run.run_until(steps);
    const std::span<const float> own = run.learner().parameters();
    all[rank].assign(own.begin(), own.end());
  });
  return all;
}

double largest_difference(const Floats& a, const Floats& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  return largest;
}

class AllReduce : public ::testing::TestWithParam<Recipe> {};

// Step 13 is in the middle of a period: parts with rounds since are averaged, others are not.
TEST_P(AllReduce, LeavesEveryRankWhereGatheredUpdatesDo) {
  const EngineOptions gathered = setup_for(GetParam());
  for (const std::uint64_t steps : {13U, 15U}) {
    const std::vector<Floats> expected = parameters_after(gathered, steps);
    const std::vector<Floats> got = parameters_after(in_place(GetParam()), steps);
    for (std::size_t rank = 0; rank < got.size(); ++rank)
      EXPECT_LT(largest_difference(got[rank], expected[rank]), 2e-6) << rank;
  }
  // So the comparison means something.
  const std::vector<Floats> initial = parameters_after(gathered, 0);
  EXPECT_GT(largest_difference(parameters_after(gathered, 13)[0], initial[0]), 1e-2);
}

TEST_P(AllReduce, GoesOnFromCheckpointsAsIfNothingHadHappened) {
  const EngineOptions options = in_place(GetParam());
  const std::vector<RankResult> undisturbed = run_all(options);
  ThreadsGather first(kRankWeights.size());
  std::vector<State> saved(kRankWeights.size());
  on_all_ranks([&](std::size_t rank) {
    RankRun run(options, rank, first);
    run.run_until(11);
    saved[rank] = run.save();
  });
  ThreadsGather second(kRankWeights.size());
  std::vector<RankResult> results(kRankWeights.size());
  on_all_ranks([&](std::size_t rank) {
    RankRun run(options, rank, second, &saved[rank]);
    run.run_until(kRankSteps);
    results[rank] = run.finish();
  });
  EXPECT_EQ(results, undisturbed);
}

// The engine keeps no vector of the model for it.
TEST_P(AllReduce, ACheckpointHasParametersAndOptimizerOnly) {
  const EngineOptions options = in_place(GetParam());
  ThreadsGather ranks(kRankWeights.size());
  on_all_ranks([&](std::size_t rank) {
    RankRun run(options, rank, ranks);
    run.run_until(6);
    for (const auto& [name, values] : run.save().tensors) {
      if (name == "shared" || name == "optimizer") continue;
      EXPECT_THAT(values, SizeIs(0)) << name;
    }
  });
}

TEST_P(AllReduce, AGradientThatIsNotFiniteHarmsNobody) {
  const EngineOptions options = in_place(GetParam());
  ThreadsGather ranks(kRankWeights.size());
  on_all_ranks([&](std::size_t rank) {
    RankRun run(options, rank, ranks);
    run.run_until(4);
    run.learner().compute_gradient();
    if (rank == 1) run.learner().gradient()[0] = std::numeric_limits<float>::quiet_NaN();
    run.engine().submit(run.learner().gradient());
    EXPECT_TRUE(run.engine().end_step().ok());
    run.run_until(kRankSteps);
    EXPECT_EQ(run.engine().non_finite_steps(), rank == 1 ? 1U : 0U);
    EXPECT_THAT(run.learner().parameters(),
                Each(::testing::Truly([](float x) { return std::isfinite(x); })));
  });
}

TEST_P(AllReduce, ALastAverageMakesAllRanksEqual) {
  EngineOptions options = in_place(GetParam());
  if (has_local_steps(options.recipe.plan.merge)) options.final_average = kRankSteps - 1;
  const std::vector<RankResult> results = run_all(options);
  EXPECT_THAT(results, Each(results[0]));
  EXPECT_EQ(results[0].shared, results[0].parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, AllReduce,
    ::testing::Values(find_recipe("d-sgd").value(), find_recipe("wfbp").value(),
                      find_recipe("local-sgd").value(), with_fixed_schedule("local-sgd-parts"),
                      with_fixed_schedule("plsgd-enp"), with_fixed_schedule("dreamddp")),
    [](const auto& test) { return test_name_of(test.param); });

// Their sum has one order only, and halving is exact.
TEST(AllReduceOfGradients, OfTwoEqualRanksHasTheBitsOfTheLab) {
  EngineOptions options = in_place(find_recipe("wfbp").value());
  options.replicas = 2;
  const std::vector<RankResult> results = run_all(options);
  options.averages_in_place = false;
  QuadraticWorkload workload(kRunElements);
  Cluster lab(options, workload, {1.0F, 1.0F});
  for (std::uint64_t step = 0; step < kRankSteps; ++step) lab.step();
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].shared,
              result_of(*lab.replicas[i].learner, *lab.replicas[i].engine).shared);
}

TEST(AllReducePlans, AreEqualOnRanksThatMeasureDifferentTimes) {
  EngineOptions options = in_place(find_recipe("dreamddp").value());
  options.final_average = kRankSteps - 1;
  const std::vector<RankResult> results = run_all(options);
  ASSERT_FALSE(results[0].plans.empty());
  EXPECT_FALSE(results[0].plans.front().schedule.empty());
  EXPECT_THAT(results, Each(results[0]));
}

TEST(AllReduceCheckpoint, OfGatheredUpdatesIsRefused) {
  EngineOptions options = setup_for(with_fixed_schedule("dreamddp"));
  ThreadsGather ranks(kRankWeights.size());
  on_all_ranks([&](std::size_t rank) {
    RankRun run(options, rank, ranks);
    const State state = run.save();
    EngineOptions other = options;
    other.averages_in_place = true;
    ThreadsGather alone(1);
    other.replicas = 1;
    RankRun resumed(other, 0, alone);
    const Status loaded = resumed.engine().load(state);
    ASSERT_FALSE(loaded.ok());
    EXPECT_THAT(loaded.error().message, HasSubstr("not formed in place"));
  });
}

// Two ranks without engines, whose values are what a test says.
class TwoValues : public ::testing::Test {
 protected:
  TwoValues() {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EngineOptions options = longhaul::testing::setup_of(Merge::kOptimizer, "dense/fp32", {});
      options.slot = rank;
      options.replicas = 2;
      options.averages_in_place = true;
      ranks_[rank] =
          Collective::start(
              {.engine = options, .elements = 2 * kPart, .weights = {1.0F, 3.0F}, .steps = 10},
              meeting_.of(rank), clock_, meeting_.sum_of(rank))
              .value();
    }
  }
  // Else a thread waits for ever for the other rank.
  ~TwoValues() override { meeting_.lose(0); }

  void submit(std::size_t rank, std::uint32_t part, Floats& values) {
    ranks_[rank]->submit({.round = {.step = 0, .part = part},
                          .elements = values.size(),
                          .in_place = std::span(values)});
  }

  static constexpr std::size_t kPart = 3;
  Clock clock_;
  ThreadsGather meeting_{2};
  std::array<std::unique_ptr<Collective>, 2> ranks_;
};

TEST_F(TwoValues, BecomeTheirWeightedMeanInAnyOrderOfParts) {
  std::array<Floats, 2> first{Floats(kPart, 1), Floats(kPart, 5)};
  std::array<Floats, 2> second{Floats(kPart, -8), Floats(kPart, 0)};
  submit(0, 0, first[0]);
  submit(0, 1, second[0]);
  submit(1, 1, second[1]);
  submit(1, 0, first[1]);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (const std::uint32_t part : {0U, 1U}) {
      const Result<Mean> mean = ranks_[rank]->collect({.step = 0, .part = part}, Deadline::max());
      ASSERT_TRUE(mean.ok()) << mean.error().message;
      EXPECT_EQ(mean->elements(), kPart);
      EXPECT_FALSE(mean->is_sparse());
    }
    EXPECT_EQ(first[rank], Floats(kPart, 4.0F));
    EXPECT_EQ(second[rank], Floats(kPart, -2.0F));
    EXPECT_EQ(ranks_[rank]->updates_in_flight(), 0U);
  }
}

TEST_F(TwoValues, OfARankThatIsGoneAreMissed) {
  Floats own(kPart, 1);
  submit(0, 0, own);
  meeting_.lose(1);
  const Result<Mean> mean = ranks_[0]->collect({.step = 0}, Deadline::max());
  ASSERT_FALSE(mean.ok());
  EXPECT_THAT(mean.error().message, HasSubstr("rank 1 is gone"));
}

}  // namespace
}  // namespace longhaul::trainer
