// Updates that come back with the mean they are not part of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "longhaul/sync/engine.h"
#include "tests/codec/checked.h"
#include "tests/sync/counting_exchange.h"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;

class ReturnedUpdate : public ::testing::Test {
 protected:
  Workers workers_;
  CountingExchange exchange_;
  std::vector<float> parameters_ = {0, 0};
  std::vector<float> gradient_ = {4, 8};
  Engine engine_{{.recipe = {.plan = {.delay_steps = 1, .merge = Merge::kLate}},
                  .optimizer = {.kind = OptimizerKind::kSgd},
                  .lr = {.peak = 0.5}},
                 parameters_,
                 exchange_,
                 workers_};
};

TEST_F(ReturnedUpdate, GoesBackToTheResidual) {
  engine_.submit(gradient_);  // moves by 2 and 4
  ASSERT_TRUE(engine_.end_step().ok());
  engine_.submit_nothing();
  exchange_.returned = exchange_.updates[0].payload;
  ASSERT_TRUE(engine_.end_step().ok());
  EXPECT_EQ(engine_.residual()[0], 2.0F);
  EXPECT_EQ(engine_.residual()[1], 4.0F);
  EXPECT_EQ(parameters_[0], -1.0F - 2.0F) << "the mean, and what is still to be told";
}

TEST_F(ReturnedUpdate, OfAnotherPartIsAnErrorThatNamesItsStep) {
  exchange_.returned = testing_data::dense({1, 2, 3});
  engine_.submit(gradient_);
  ASSERT_TRUE(engine_.end_step().ok());
  engine_.submit_nothing();
  const Status merged = engine_.end_step();
  ASSERT_FALSE(merged.ok());
  EXPECT_THAT(merged.error().message, HasSubstr("mean of step 0: an update of another part"));
  EXPECT_EQ(engine_.rounds_in_flight(), 2U);
}

}  // namespace
}  // namespace longhaul::testing
