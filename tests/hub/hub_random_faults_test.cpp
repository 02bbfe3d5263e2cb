// Faults in random order: the run goes on, and ends with one model.
#include <gtest/gtest.h>

#include "tests/hub/fault_run.h"

namespace longhaul {
namespace {

constexpr int kFaults = 50;

std::filesystem::path journal_of(const std::string& test) {
  return std::filesystem::path(::testing::TempDir()) /
         ("longhaul_faults_" + testing::name_of_test(test));
}

class HubRandomFaults : public ::testing::TestWithParam<std::string> {};

TEST_P(HubRandomFaults, TheRunGoesOnAndEndsWithOneModel) {
  testing::FaultRun run({.recipe = GetParam(),
                         .elements = 200,
                         .lr = GetParam() == "dd-ef-sgd" ? 0.002 : 0.05,
                         .directory = journal_of(GetParam()),
                         .journal = {.rounds = 12, .log_rounds = 30},
                         .silence = Seconds(0.2),
                         .step_time = Seconds(0.0005),
                         .is_open_ended = true},
                        digest_of(std::as_bytes(std::span(GetParam()))));
  ASSERT_TRUE(run.reaches(50));
  for (int i = 0; i < kFaults; ++i) run.fault(true);
  ASSERT_TRUE(run.finishes());
  // Three of 200 elements in every 30 steps do not learn in such a short run.
  if (GetParam() == "sparseloco") return run.expect_one_model();
  run.expect_one_good_model();
}

// With checkpoints from which those that were killed go on, and no rest before the last step.
TEST_P(HubRandomFaults, TheRunEndsWithOneModelThoughTheyGoOnToItsEnd) {
  testing::FaultRun run({.recipe = GetParam(),
                         .elements = 200,
                         .steps = 600,
                         .lr = GetParam() == "dd-ef-sgd" ? 0.002 : 0.05,
                         .directory = journal_of(GetParam() + "_to_the_end"),
                         .journal = {.rounds = 12, .log_rounds = 30},
                         .silence = Seconds(0.2),
                         .patience = Seconds(0.5),
                         .step_time = Seconds(0.0005),
                         .save_every = 20},
                        digest_of(std::as_bytes(std::span(GetParam()))));
  ASSERT_TRUE(run.finishes_among_faults());
  run.expect_one_model();
}

INSTANTIATE_TEST_SUITE_P(Hub, HubRandomFaults,
                         ::testing::Values("static", "dd-ef-sgd", "dga", "auto", "deco-ahead",
                                           "olco3-oc", "olco3-tc", "streaming-diloco", "sparseloco",
                                           "olco3-oc:5:4", "uneven-late", "streaming-diloco:7:6",
                                           "wfbp", "dreamddp", "dreamddp-late"),
                         [](const auto& recipe) { return testing::name_of_test(recipe.param); });

}  // namespace
}  // namespace longhaul
