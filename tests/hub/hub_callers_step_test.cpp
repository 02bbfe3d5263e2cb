// Replicas whose local step is the caller's: what they compute cannot be computed again, so they
// never do a step twice, and what they sent before they were killed counts once.
#include <gtest/gtest.h>

#include "tests/hub/fault_run.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using testing::FaultRun;
using testing::HubRunOptions;
using testing::Ledger;
using testing::soon;

constexpr std::size_t kCallersElements = 64;

struct CallersCase {
  Merge merge = Merge::kLate;
  int period_steps = 1;
  int delay_steps = 0;
  int fragments = 1;
  // Sparse, with values as they are: what a replica sends leaves no rounding behind.
  CodecOptions codec{.kind = CodecKind::kTopK, .values = ValueFormat::kFp32};

  // An anchor has no residual: replicas tell where they are. Signs leave a residual everywhere.
  [[nodiscard]] bool has_books() const {
    return merge != Merge::kAnchor && codec.kind == CodecKind::kTopK;
  }
};

std::string callers_name(const ::testing::TestParamInfo<CallersCase>& one) {
  return std::string(name_of(one.param.merge)) + "_period_" +
         std::to_string(one.param.period_steps) + "_delay_" +
         std::to_string(one.param.delay_steps) + "_in_" + std::to_string(one.param.fragments) +
         (one.param.codec.kind == CodecKind::kSign ? "_signs" : "");
}

Recipe callers_recipe(const CallersCase& one) {
  const char* name = one.merge == Merge::kLate    ? "static"
                     : one.merge == Merge::kOuter ? "diloco"
                                                  : "overlap-local-sgd";
  Recipe recipe = find_recipe(name).value();
  if (one.merge != Merge::kAnchor) recipe.codec = one.codec;
  recipe.plan.keep_ratio = 0.1;
  recipe.plan.period_steps = one.period_steps;
  recipe.plan.delay_steps = one.delay_steps;
  recipe.local.fragments = one.fragments;
  recipe.local.delay_periods = 0;
  recipe.local.outer_lr_by_replicas = nullptr;
  if (one.merge == Merge::kOuter) recipe.local.outer_lr = 0.5F;
  if (one.merge == Merge::kOuter) recipe.local.outer_momentum = 0.3F;
  return recipe;
}

class HubCallersStep : public ::testing::TestWithParam<CallersCase> {
 protected:
  HubCallersStep() { std::filesystem::create_directories(logs_); }
  ~HubCallersStep() override { std::filesystem::remove_all(logs_); }

  HubRunOptions options() {
    return {.elements = kCallersElements,
            .steps = 400,
            .lr = 0.02,
            .directory = testing::test_directory(),
            .journal = {.rounds = 1'000'000, .log_rounds = 1'000'000},
            .silence = Seconds(0.2),
            .patience = Seconds(0.5),
            .step_time = Seconds(0.0005),
            .ledger = &ledger_,
            .save_every = 20,
            .other_recipe = callers_recipe(GetParam()),
            .local_step = LocalStep::kCallers,
            .sent_logs = logs_};
  }
  void expect_books_in_order(const FaultRun& run) {
    if (GetParam().has_books()) testing::expect_books_in_order(run, ledger_);
    EXPECT_EQ(ledger_.wrong_means(), 0U);
    for (std::size_t slot = 0; slot < 3; ++slot) EXPECT_EQ(ledger_.done_again(slot), 0U) << slot;
  }

  std::filesystem::path logs_{testing::test_directory() += "_sent"};
  Ledger ledger_{
      kCallersElements,
      split_into_parts(testing::QuadraticWorkload(kCallersElements).layers(), kCallersElements,
                       static_cast<std::size_t>(GetParam().fragments))};
};

TEST_P(HubCallersStep, NoStepIsDoneAgainAndNothingCountsTwiceAmongFaultsOfAllKinds) {
  HubRunOptions hasty = options();
  hasty.policy = {.quorum = 0.6};
  hasty.steps = 1200;
  FaultRun run(hasty, 21);
  ASSERT_TRUE(run.finishes_among_faults());
  run.expect_one_model();
  EXPECT_EQ(run.replica(0).engine().steps_done(), hasty.steps);
  expect_books_in_order(run);
}

// With all replicas in every round their mean is where they began minus the mean of all their
// steps, but for those that were lost.
TEST_P(HubCallersStep, TheMeanOfReplicasIsWhereTheirStepsLedButForThoseLost) {
  HubRunOptions all = options();
  all.policy = {.least = 3};
  all.save_every = 50;
  FaultRun run(all, 22);
  for (const std::uint64_t round : {70U, 140U, 210U}) {
    ASSERT_TRUE(soon([&] { return run.replica(1).steps() >= round; }));
    run.kill_or_start(1);
    run.kill_or_start(1);
    ASSERT_TRUE(soon([&] { return run.replica(2).steps() >= round + 15; }));
    run.kill_or_start(2);
    run.restart_hub();
    run.kill_or_start(2);
  }
  ASSERT_TRUE(run.ends());
  run.expect_one_model();
  expect_books_in_order(run);
  EXPECT_EQ(ledger_.moves_lost(0), 0U);
  EXPECT_GT(ledger_.moves_lost(1), 0U);
  if (GetParam().merge != Merge::kLate || !GetParam().has_books()) return;
  std::vector<double> off(kCallersElements, 3.0);  // all begin at 1
  for (std::size_t slot = 0; slot < 3; ++slot) {
    const std::vector<double> kept = ledger_.kept(slot);
    const std::span position = run.replica(slot).position();
    for (std::size_t i = 0; i < kCallersElements; ++i)
      off[i] -= kept[i] + static_cast<double>(position[i]);
  }
  for (const double value : off) EXPECT_NEAR(value, 0, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, HubCallersStep,
    ::testing::Values(CallersCase{.delay_steps = 0}, CallersCase{.delay_steps = 1},
                      CallersCase{.delay_steps = 3},
                      CallersCase{.period_steps = 4, .delay_steps = 0},
                      CallersCase{.period_steps = 4, .delay_steps = 2},
                      CallersCase{.period_steps = 4, .delay_steps = 3, .fragments = 5},
                      CallersCase{.delay_steps = 2, .codec = {.kind = CodecKind::kSign}},
                      CallersCase{.merge = Merge::kOuter, .period_steps = 1, .delay_steps = 2},
                      CallersCase{.merge = Merge::kOuter, .period_steps = 4, .delay_steps = 0},
                      CallersCase{.merge = Merge::kOuter, .period_steps = 4, .delay_steps = 3},
                      CallersCase{.merge = Merge::kAnchor, .period_steps = 1, .delay_steps = 1},
                      CallersCase{.merge = Merge::kAnchor, .period_steps = 4, .delay_steps = 3}),
    callers_name);

// A replica that has forgotten what it sent cannot know its residual: it takes the hub's state.
TEST(HubCallersStepLoss, TellsOfTheResidualIfWhatWasSentIsForgotten) {
  FaultRun run({.elements = kCallersElements,
                .steps = 300,
                .lr = 0.02,
                .directory = testing::test_directory(),
                .step_time = Seconds(0.0005),
                .save_every = 50,
                .other_recipe = callers_recipe({.delay_steps = 2}),
                .local_step = LocalStep::kCallers},
               23);
  ASSERT_TRUE(soon([&] { return run.replica(1).steps() >= 80; }));
  run.kill_or_start(1);
  run.kill_or_start(1);
  ASSERT_TRUE(run.ends());
  run.expect_one_model();
  ASSERT_TRUE(run.replica(1).replaced());
  EXPECT_EQ(run.replica(1).replaced()->from_step % 50, 0U);
  EXPECT_GT(run.replica(1).replaced()->residual, 0);
}

// Why a replica does not take the plan of the hub's recipe, or one that comes with a mean.
std::string refusal_of(const std::string& recipe, std::optional<Plan> announced = {}) {
  FaultRun run({.recipe = recipe,
                .elements = kCallersElements,
                .steps = 300,
                .lr = 0.002,
                .directory = testing::test_directory(),
                .announced = announced,
                .local_step = LocalStep::kCallers},
               24);
  EXPECT_TRUE(soon([&] { return run.replica(0).has_failed(); })) << recipe;
  run.replica(0).stop();
  return run.replica(0).failure() ? run.replica(0).failure()->message : "taken";
}

TEST(HubCallersStepPlans, ThatDoNotFitAreRefusedWithTheReason) {
  for (const char* recipe : {"dga", "deco-ahead", "dd-ef-sgd"}) {
    const std::string why = refusal_of(recipe);
    EXPECT_NE(why.find("plan of the hub: merge rule"), std::string::npos) << why;
    EXPECT_NE(why.find("needs Longhaul's own optimizer"), std::string::npos) << why;
  }
}

TEST(HubCallersStepPlans, WhoseLayersTheBackwardPassIsToHideAreRefusedWithTheReason) {
  const std::string why = refusal_of("dreamddp");
  EXPECT_NE(why.find("plan of the hub: recipe dreamddp: with the caller's own optimizer"),
            std::string::npos)
      << why;
}

TEST(HubCallersStepPlans, OfLayersThatAreMergedLateEndWithOneModel) {
  FaultRun run({.recipe = "dreamddp-late",
                .elements = kCallersElements,
                .steps = 60,
                .lr = 0.002,
                .directory = testing::test_directory(),
                .local_step = LocalStep::kCallers},
               25);
  ASSERT_TRUE(run.ends());
  run.expect_one_model();
}

TEST(HubCallersStepPlans, ThatDoNotFitAreRefusedWhenTheyComeWithAMean) {
  const std::string why = refusal_of("static", Plan{.delay_steps = 1, .merge = Merge::kAhead});
  EXPECT_EQ(why, "mean of step 0: merge rule ahead needs Longhaul's own optimizer");
}

}  // namespace
}  // namespace longhaul
