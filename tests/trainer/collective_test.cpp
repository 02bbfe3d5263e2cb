// The collective with threads as ranks: its bits are those of the simulated network.
#include "trainer/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/codec/checked.h"
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
using ::testing::HasSubstr;

std::vector<Recipe> fixed_recipes() {
  std::vector<Recipe> fixed;
  for (const Recipe& recipe : all_recipes())
    if (recipe.planner == PlannerKind::kNone) fixed.push_back(recipe);
  for (const char* name : {"local-sgd-parts", "plsgd-enp", "dreamddp"})
    fixed.push_back(with_fixed_schedule(name));
  fixed.push_back(with_fixed_schedule("dreamddp-late", 2));
  return fixed;
}

class CollectiveRecipe : public ::testing::TestWithParam<Recipe> {};

TEST_P(CollectiveRecipe, HasTheBitsOfTheSimulatedNetwork) {
  const EngineOptions options = setup_for(GetParam());
  QuadraticWorkload workload(kRunElements);
  Cluster lab(options, workload, kRankWeights);
  for (std::uint64_t step = 0; step < kRankSteps; ++step) lab.step();
  lab.settle();
  const std::vector<RankResult> results = run_all(options);
  for (std::size_t i = 0; i < kRankWeights.size(); ++i) {
    ASSERT_TRUE(lab.replicas[i].engine->drain().ok());
    EXPECT_EQ(results[i], result_of(*lab.replicas[i].learner, *lab.replicas[i].engine)) << i;
  }
}

TEST_P(CollectiveRecipe, GoesOnFromCheckpointsAsIfNothingHadHappened) {
  const EngineOptions options = setup_for(GetParam());
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

INSTANTIATE_TEST_SUITE_P(FixedPlans, CollectiveRecipe, ::testing::ValuesIn(fixed_recipes()),
                         [](const auto& test) { return test_name_of(test.param); });

class CollectivePlans : public ::testing::TestWithParam<const char*> {};

TEST_P(CollectivePlans, AreEqualOnRanksThatMeasureDifferentTimes) {
  const std::vector<RankResult> results = run_all(setup_for(find_recipe(GetParam()).value()));
  EXPECT_FALSE(results[0].plans.empty());
  for (std::size_t rank = 1; rank < results.size(); ++rank) {
    EXPECT_EQ(results[rank].plans, results[0].plans);
    EXPECT_EQ(results[rank].shared, results[0].shared);
  }
}

INSTANTIATE_TEST_SUITE_P(Planners, CollectivePlans,
                         ::testing::Values("auto", "deco", "dreamddp", "dreamddp-late"));

TEST(CollectiveSizes, AreThoseOfAllOtherUpdates) {
  const RoundSizes sizes(parse_codec("top_k/bf16").value(), 10'000, 4, {}, WayDown::kForwarded);
  const RoundSize size = sizes.exact(0.5);
  EXPECT_DOUBLE_EQ(size.down, 3 * size.up);
  EXPECT_EQ(size.way, WayDown::kForwarded);
}

// Ranks gather one layer after the other: the whole model takes as long as all its layers.
TEST(CollectiveSizes, LayersCrossOneLine) {
  constexpr std::size_t kLarge = 1'000'000;
  constexpr Seconds kGather{2.0};
  EngineOptions options = setup_for(find_recipe("local-sgd-parts").value());
  options.layers = {{.name = "a", .offset = 0, .count = kLarge}};
  for (const std::size_t ranks : {2U, 4U}) {
    options.replicas = ranks;
    CollectivePlanner planner(options, kLarge, Seconds(1e-6));
    for (int i = 0; i < 3; ++i)
      planner.note(
          std::vector<Turn>(ranks, {.payload_time = kGather, .payload_bytes = 4 * kLarge}));
    const Decision decision = planner.first();
    EXPECT_NEAR(decision.step_time.count() * decision.plan.period_steps, kGather.count(), 0.02)
        << ranks;
  }
}

TEST(CollectiveCheckpoints, TimeAndStepAreCommonToAllRanks) {
  ThreadsGather gather(kRankWeights.size());
  std::vector<std::vector<std::uint64_t>> kept(kRankWeights.size());
  std::vector<std::vector<double>> times(kRankWeights.size());
  on_all_ranks([&](std::size_t rank) {
    RankRun run(setup_for(find_recipe("static").value()), rank, gather);
    run.run_until(8);
    run.collective().keep(rank == 1 ? 5 : 7);
    run.run_until(kRankSteps);
    kept[rank] = run.kept_by_all;
    times[rank] = run.common_time;
  });
  EXPECT_EQ(kept[0].front(), 0U);
  EXPECT_EQ(kept[0].back(), 5U);
  EXPECT_GT(times[0].back(), times[0].front());
  for (std::size_t rank = 1; rank < kRankWeights.size(); ++rank) {
    EXPECT_EQ(kept[rank], kept[0]);
    EXPECT_EQ(times[rank], times[0]);
  }
}

// Two ranks without engines, which submit what a test says.
class TwoRanks : public ::testing::Test {
 protected:
  static constexpr std::size_t kElements = 5;
  TwoRanks() {
    for (std::size_t rank = 0; rank < 2; ++rank) start(rank, gather_.of(rank));
  }
  // Else a thread waits for ever for the other rank.
  ~TwoRanks() override { gather_.lose(0); }

  void start(std::size_t rank, const AllGather& gather) {
    EngineOptions options = longhaul::testing::setup_of(Merge::kOptimizer, "dense/fp32", {});
    options.slot = rank;
    options.replicas = 2;
    ranks_[rank] =
        Collective::start(
            {.engine = options, .elements = kElements, .weights = {1.0F, 1.0F}, .steps = 10},
            gather, clock_)
            .value();
  }
  static Update update(RoundId round, float value, std::size_t elements = kElements) {
    return {.round = round,
            .elements = elements,
            .payload = testing_data::dense(std::vector<float>(elements, value))};
  }

  Clock clock_;
  ThreadsGather gather_{2};
  std::array<std::unique_ptr<Collective>, 2> ranks_;
};

TEST_F(TwoRanks, MaySendTheirPartsInAnyOrder) {
  ranks_[0]->submit(update({.step = 0, .part = 0}, 1));
  ranks_[0]->submit(update({.step = 0, .part = 1}, 2));
  ranks_[1]->submit(update({.step = 0, .part = 1}, 4));
  ranks_[1]->submit(update({.step = 0, .part = 0}, 3));
  for (const auto& rank : ranks_) {
    for (const std::uint32_t part : {0U, 1U}) {
      const Result<Mean> mean = rank->collect({.step = 0, .part = part}, Deadline::max());
      ASSERT_TRUE(mean.ok()) << mean.error().message;
      EXPECT_EQ(mean->to_vector(), std::vector<float>(kElements, part == 0 ? 2.0F : 3.0F));
    }
    EXPECT_EQ(rank->updates_in_flight(), 0U);
  }
}

TEST_F(TwoRanks, MayHaveNothingToSend) {
  ranks_[0]->submit({.round = {.step = 0}, .elements = kElements});
  ranks_[1]->submit(update({.step = 0}, 3));
  const Result<Mean> mean = ranks_[0]->collect({.step = 0}, Deadline::max());
  ASSERT_TRUE(mean.ok()) << mean.error().message;
  EXPECT_EQ(mean->to_vector(), std::vector<float>(kElements, 1.5F));
}

TEST_F(TwoRanks, AWaitEndsAtItsDeadlineAndNothingIsLost) {
  ranks_[0]->submit(update({.step = 0}, 1));
  EXPECT_EQ(ranks_[0]->collect({.step = 0}, Deadline::min()).error().code, ErrorCode::kDeadline);
  ranks_[1]->submit(update({.step = 0}, 1));
  EXPECT_TRUE(ranks_[0]->collect({.step = 0}, Deadline::max()).ok());
}

TEST_F(TwoRanks, ARankThatIsGoneEndsEveryWait) {
  ranks_[0]->submit(update({.step = 0}, 1));
  gather_.lose(1);
  for (int i = 0; i < 2; ++i) {
    const Result<Mean> mean = ranks_[0]->collect({.step = 0}, Deadline::max());
    ASSERT_FALSE(mean.ok());
    EXPECT_EQ(mean.error().code, ErrorCode::kClosed);
    EXPECT_THAT(mean.error().message, HasSubstr("rank 1 is gone"));
  }
  EXPECT_FALSE(ranks_[0]->stance(1, {}, Deadline::max()).ok());
}

TEST_F(TwoRanks, AnUpdateOfAnotherSizeIsRefusedByName) {
  ranks_[0]->submit(update({.step = 0}, 1));
  ranks_[1]->submit(update({.step = 0}, 1, kElements - 1));
  for (const auto& rank : ranks_) {
    const Result<Mean> mean = rank->collect({.step = 0}, Deadline::max());
    ASSERT_FALSE(mean.ok());
    EXPECT_THAT(mean.error().message, HasSubstr("rank 1: round 0 has another size"));
  }
}

TEST_F(TwoRanks, TakePartUntilTheLastStep) {
  EXPECT_EQ(ranks_[0]->stance(9, {}, Deadline::max()).value(), Stance::kTakePart);
  EXPECT_EQ(ranks_[0]->stance(10, {}, Deadline::max()).value(), Stance::kFinish);
}

TEST_F(TwoRanks, APayloadThatWasDamagedIsRefusedByName) {
  int calls = 0;
  start(0, [&calls, inner = gather_.of(0)](ByteView own) {
    Result<std::vector<ByteBuffer>> gathered = inner(own);
    if (gathered.ok() && ++calls % 2 == 0) gathered->at(1).back() ^= std::byte{1};
    return gathered;
  });
  ranks_[0]->submit(update({.step = 0}, 1));
  ranks_[1]->submit(update({.step = 0}, 1));
  const Result<Mean> mean = ranks_[0]->collect({.step = 0}, Deadline::max());
  ASSERT_FALSE(mean.ok());
  EXPECT_THAT(mean.error().message, HasSubstr("rank 1, round 0"));
  ranks_[0].reset();
}

}  // namespace
}  // namespace longhaul::trainer
