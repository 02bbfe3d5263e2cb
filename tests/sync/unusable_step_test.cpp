// Steps of rules with local steps whose gradient is of no use: nothing of them stays, and the
// period that they end is told all the same.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kUnusableElements = 20;
constexpr int kUnusablePeriod = 3;

EngineOptions unusable_options(Merge merge, int delay_steps) {
  EngineOptions options =
      setup_of(merge, "dense/4bit", {.delay_steps = delay_steps, .period_steps = kUnusablePeriod});
  options.optimizer.kind = OptimizerKind::kSgd;
  options.recipe.local.mixing = merge == Merge::kLate ? std::nullopt : std::optional(0.5F);
  options.lr.peak = 4;  // the gradient may be below what is absurd, and the step above it
  return options;
}

// One replica, whose gradients are about what a test says; zero: there is none.
struct UnusableRun {
  UnusableRun(Merge merge, int delay_steps)
      : network(std::vector<SimulatedPeer>{{.link = test_link()}}, workers),
        engine(unusable_options(merge, delay_steps), parameters, network.exchange(0), workers) {}

  void step(float gradient) {
    std::vector<float> gradients(kUnusableElements);
    for (std::size_t j = 0; j < gradients.size(); ++j)
      gradients[j] = gradient * (1.0F + 0.1F * static_cast<float>(j));
    if (gradient == 0) {
      engine.submit_nothing();
    } else {
      engine.submit(gradients);
    }
    LONGHAUL_CHECK(network.settle().ok());
    LONGHAUL_CHECK(engine.end_step().ok());
  }

  Workers workers{1};
  std::vector<float> parameters = std::vector<float>(kUnusableElements, 1.0F);
  SimulatedNetwork network;
  Engine engine;
};

class UnusableStep : public ::testing::TestWithParam<Merge> {};

TEST_P(UnusableStep, IsAStepWithoutAGradient) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 2e29F}) {
    for (const int delay : {0, 2, 4}) {
      for (int bad_step = 0; bad_step < 2 * kUnusablePeriod; ++bad_step) {
        UnusableRun bad_run(GetParam(), delay);
        UnusableRun idle_run(GetParam(), delay);
        for (int step = 0; step < 5 * kUnusablePeriod; ++step) {
          bad_run.step(step == bad_step ? bad : 0.01F);
          idle_run.step(step == bad_step ? 0 : 0.01F);
          ASSERT_EQ(bad_run.parameters, idle_run.parameters)
              << bad << " τ=" << delay << " in step " << bad_step << ", step " << step;
        }
        EXPECT_EQ(bad_run.engine.non_finite_steps(), 1U);
        EXPECT_TRUE(std::ranges::all_of(bad_run.parameters, [](float x) { return x < 1; }));
      }
    }
  }
}

TEST_P(UnusableStep, EndsItsPeriodWithWhatTheOthersMoved) {
  UnusableRun run(GetParam(), 0);
  for (int step = 0; step < kUnusablePeriod; ++step)
    run.step(step == kUnusablePeriod - 1 ? std::numeric_limits<float>::quiet_NaN() : 0.01F);
  for (const float x : run.engine.shared()) EXPECT_LT(x, 0.95F) << "two steps of 0.04";
}

TEST_P(UnusableStep, LeavesAReplicaWhereItIs) {
  UnusableRun run(GetParam(), 2);
  for (int step = 0; step < kUnusablePeriod - 1; ++step) run.step(0.01F);
  const std::vector<float> before = run.parameters;
  run.step(std::numeric_limits<float>::quiet_NaN());
  for (std::size_t j = 0; j < before.size(); ++j) EXPECT_NEAR(run.parameters[j], before[j], 1e-6);
}

// Nothing is told of a position that is of no use, and what is told later is right.
TEST_P(UnusableStep, OfTheCallersSendsNothing) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 1e31F}) {
    for (const char* codec : {"dense/fp32", "top_k/fp32"}) {
      EngineOptions options = unusable_options(GetParam(), 1);
      options.local_step = LocalStep::kCallers;
      options.recipe.codec = parse_codec(codec).value();
      options.recipe.plan.keep_ratio = 0.1;
      Workers workers{1};
      SimulatedNetwork network(std::vector<SimulatedPeer>{{.link = test_link()}}, workers);
      std::vector<float> parameters(kUnusableElements, 1.0F);
      Engine engine(options, parameters, network.exchange(0), workers);
      for (int step = 0; step < 3 * kUnusablePeriod; ++step) {
        const bool is_bad = step == kUnusablePeriod - 1;
        const float before = parameters[7];
        if (is_bad) parameters[7] = bad;
        engine.submit_moved();
        if (is_bad) parameters[7] = before;
        ASSERT_TRUE(network.settle().ok() && engine.end_step().ok());
        ASSERT_EQ(parameters, std::vector<float>(kUnusableElements, 1.0F)) << codec << step;
      }
      EXPECT_EQ(engine.non_finite_steps(), 1U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, UnusableStep,
                         ::testing::Values(Merge::kLate, Merge::kOuter, Merge::kAnchor),
                         [](const auto& test) { return test_name_of(test.param); });

}  // namespace
}  // namespace longhaul::testing
