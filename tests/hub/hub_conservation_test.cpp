// Nothing is lost and nothing counts twice, whatever breaks: each replica's updates are in the
// means or in its residual.
#include <gtest/gtest.h>

#include "tests/hub/fault_run.h"

namespace longhaul {
namespace {

using testing::FaultRun;
using testing::HubRunOptions;
using testing::Ledger;
using testing::name_of_test;

constexpr std::size_t kElements = 64;

HubRunOptions conserving_options(const std::string& recipe, Ledger& ledger) {
  return {.recipe = recipe,
          .elements = kElements,
          .lr = recipe == "dd-ef-sgd" || recipe == "deco"
                    ? 0.002
                    : 0.05,  // its updates wait long in the residual
          .directory = std::filesystem::path(::testing::TempDir()) /
                       ("longhaul_conservation_" + name_of_test(recipe)),
          .journal = {.rounds = 1'000'000, .log_rounds = 1'000'000},
          .silence = Seconds(0.2),
          .step_time = Seconds(0.0005),
          .is_open_ended = true,
          .ledger = &ledger};
}

std::string test_name(const ::testing::TestParamInfo<std::string>& recipe) {
  return testing::name_of_test(recipe.param);
}

class HubConservation : public ::testing::TestWithParam<std::string> {};

TEST_P(HubConservation, HoldsThroughBrokenLinksAndHubsThatAreKilled) {
  Ledger ledger(kElements, testing::parts_of(GetParam(), kElements));
  FaultRun run(conserving_options(GetParam(), ledger), 11);
  ASSERT_TRUE(run.reaches(50));
  for (int i = 0; i < 30; ++i) run.fault(false);
  ASSERT_TRUE(run.finishes());
  run.expect_one_good_model();
  testing::expect_books_in_order(run, ledger);
  EXPECT_GT(ledger.returned(), 0U);  // else the test tests little
}

INSTANTIATE_TEST_SUITE_P(Hub, HubConservation,
                         ::testing::Values("static", "dd-ef-sgd", "dga", "deco", "deco-late",
                                           "olco3-oc", "olco3-oc:5:4", "uneven-late",
                                           "olco3-oc:3:1", "dreamddp", "dreamddp-late"),
                         test_name);

// Replicas are killed too and do again what came after their checkpoints, links break while they
// do, and none of it stops at the last step.
class HubConservationToTheEnd : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(HubConservationToTheEnd, HoldsThroughFaultsOfAllKindsInTheMidstOfEachOther) {
  const auto& [recipe, seed] = GetParam();
  Ledger ledger(kElements, testing::parts_of(recipe, kElements));
  HubRunOptions options = conserving_options(recipe, ledger);
  options.directory += "_to_the_end_" + std::to_string(seed);
  options.is_open_ended = false;
  options.steps = 600;
  options.save_every = 20;
  options.may_look_ahead = false;
  options.patience = Seconds(0.5);  // whoever is cut off at the end cannot take its leave
  FaultRun run(options, static_cast<std::uint64_t>(seed));
  ASSERT_TRUE(run.finishes_among_faults());
  run.expect_one_model();
  EXPECT_EQ(run.replica(0).engine().steps_done(), options.steps);
  testing::expect_books_in_order(run, ledger);
}

INSTANTIATE_TEST_SUITE_P(Hub, HubConservationToTheEnd,
                         ::testing::Combine(::testing::Values("dd-ef-sgd", "deco-late", "auto",
                                                              "olco3-oc", "olco3-oc:5:4",
                                                              "uneven-late", "olco3-oc:3:1",
                                                              "dreamddp", "dreamddp-late"),
                                            ::testing::Range(1, 4)),
                         [](const auto& one) {
                           return testing::name_of_test(std::get<0>(one.param)) + '_' +
                                  std::to_string(std::get<1>(one.param));
                         });

// What a killed replica had not sent is its own loss; what the hub took is in one mean.
TEST(HubConservation, WhatTheHubTookIsInOneMeanThoughReplicasAreKilled) {
  Ledger ledger(kElements);
  HubRunOptions options = conserving_options("dd-ef-sgd", ledger);
  options.directory += "_killed";
  options.journal = {.rounds = 12, .log_rounds = 30};
  FaultRun run(options, 12);
  ASSERT_TRUE(run.reaches(50));
  for (int i = 0; i < 40; ++i) run.fault(true);
  ASSERT_TRUE(run.finishes());
  run.expect_one_good_model();
  EXPECT_EQ(ledger.closed_twice(), 0U);
  EXPECT_EQ(ledger.wrong_means(), 0U);
}

// The same with checkpoints, from which those that were killed go on.
TEST(HubConservation, WhatTheHubTookIsInOneMeanThoughReplicasAreKilledAndResume) {
  Ledger ledger(kElements);
  HubRunOptions options = conserving_options("dd-ef-sgd", ledger);
  options.directory += "_resumed";
  options.journal = {.rounds = 60, .log_rounds = 30};
  options.save_every = 20;
  FaultRun run(options, 14);
  ASSERT_TRUE(run.reaches(50));
  for (int i = 0; i < 60; ++i) run.fault(true);
  ASSERT_TRUE(run.finishes());
  run.expect_one_good_model();
  EXPECT_EQ(ledger.closed_twice(), 0U);
  EXPECT_EQ(ledger.wrong_means(), 0U);
}

TEST(HubConservation, NoticesAReturnedUpdateThatIsIgnored) {
  Ledger ledger(kElements);
  HubRunOptions options = conserving_options("static", ledger);
  options.directory += "_ignored";
  options.loses_returned = true;
  FaultRun run(options, 13);
  ASSERT_TRUE(run.reaches(50));
  run.cut_or_restore(1);
  const std::uint64_t from = run.status().next_round;
  ASSERT_TRUE(run.reaches(from + 50));
  ASSERT_TRUE(run.finishes());
  ASSERT_GT(ledger.returned(), 0U);
  EXPECT_GT(ledger.imbalance(1, run.replica(1).engine().residual()), testing::kHubTolerance);
}

}  // namespace
}  // namespace longhaul
