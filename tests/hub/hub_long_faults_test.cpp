// Random faults for longer than one waits for: more of them, more seeds, replicas of all kinds.
#include <gtest/gtest.h>

#include "tests/hub/fault_run.h"

namespace longhaul {
namespace {

using LongFaultsCase = std::tuple<std::string, int>;

class HubLongFaults : public ::testing::TestWithParam<LongFaultsCase> {};

TEST_P(HubLongFaults, EndWithOneModelAndMeansThatAddUp) {
  const auto& [recipe, seed] = GetParam();
  constexpr std::size_t kElements = 64;
  testing::Ledger ledger(kElements);
  testing::FaultRun run(
      {.recipe = recipe,
       .replicas = 4,
       .elements = kElements,
       .lr = recipe == "dd-ef-sgd" ? 0.002 : 0.02,
       .directory = std::filesystem::path(::testing::TempDir()) /
                    ("longhaul_long_faults_" + recipe + std::to_string(seed)),
       .journal = {.rounds = static_cast<std::size_t>(seed) * 4, .log_rounds = 30},
       .silence = Seconds(0.2),
       .step_time = Seconds(0.0005),
       .is_open_ended = true,
       .ledger = &ledger},
      static_cast<std::uint64_t>(seed));
  ASSERT_TRUE(run.reaches(50));
  for (int i = 0; i < 150; ++i) run.fault(true);
  ASSERT_TRUE(run.finishes());
  run.expect_one_good_model();
  EXPECT_EQ(ledger.closed_twice(), 0U);
  EXPECT_EQ(ledger.wrong_means(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Hub, HubLongFaults,
                         ::testing::Combine(::testing::Values("static", "dd-ef-sgd", "dga", "auto",
                                                              "deco-ahead"),
                                            ::testing::Range(1, 5)),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param) + '_' +
                                              std::to_string(std::get<1>(one.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace longhaul
