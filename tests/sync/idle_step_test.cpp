// Steps without a gradient: with an empty update, or with none at all.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/sync/cluster.h"
#include "tests/sync/counting_exchange.h"

namespace longhaul::testing {
namespace {

class IdleStep : public ::testing::TestWithParam<Merge> {
 protected:
  Workers workers_;
  CountingExchange exchange_;
  std::vector<float> parameters_ = {0, 0};
  Engine engine_{{.recipe = {.plan = {.delay_steps = 1, .merge = GetParam()}},
                  .optimizer = {.kind = OptimizerKind::kSgd},
                  .lr = {.peak = 1}},
                 parameters_,
                 exchange_,
                 workers_};
};

TEST_P(IdleStep, TakesPartWithAnEmptyUpdate) {
  for (int step = 0; step < 20; ++step) {
    engine_.submit_nothing();
    EXPECT_TRUE(engine_.is_half_done());
    ASSERT_TRUE(engine_.end_step().ok());
    EXPECT_FALSE(engine_.is_half_done());
  }
  ASSERT_EQ(exchange_.updates.size(), 20U);
  EXPECT_TRUE(exchange_.updates[3].payload.empty());
  EXPECT_EQ(exchange_.updates[3].elements, 2U);
  EXPECT_EQ(exchange_.updates[3].round.step, 3U);
  EXPECT_EQ(exchange_.collected.size(), 19U);
  EXPECT_EQ(engine_.non_finite_steps(), 0U);
  EXPECT_FALSE(engine_.has_diverged());
}

TEST_P(IdleStep, SitsOutARoundAndCollectsItsMean) {
  engine_.sit_out();
  EXPECT_TRUE(engine_.is_half_done());
  ASSERT_TRUE(engine_.end_step().ok());
  engine_.sit_out();
  ASSERT_TRUE(engine_.end_step().ok());
  EXPECT_TRUE(exchange_.updates.empty());
  EXPECT_EQ(exchange_.collected, std::vector<std::uint64_t>{0});
  EXPECT_EQ(engine_.shared()[0], -1.0F);
  EXPECT_EQ(engine_.steps_done(), 2U);
}

TEST_P(IdleStep, HasOneFirstHalf) {
  engine_.sit_out();
  std::vector<float> gradient{1, 1};
  EXPECT_THROW(engine_.sit_out(), std::logic_error);
  EXPECT_THROW(engine_.submit_nothing(), std::logic_error);
  EXPECT_THROW(engine_.submit(gradient), std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(Rules, IdleStep,
                         ::testing::Values(Merge::kOptimizer, Merge::kOwnStep, Merge::kLate,
                                           Merge::kAhead),
                         [](const auto& test) { return test_name_of(test.param); });

}  // namespace
}  // namespace longhaul::testing
