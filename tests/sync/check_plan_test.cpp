// Which recipes an engine refuses, and the reason that it gives.
#include <gtest/gtest.h>

#include <string>

#include "longhaul/sync/engine.h"

namespace longhaul {
namespace {

std::string refusal_of(const EngineOptions& options) {
  const Status status = check_plan(options.recipe.plan, options);
  return status.ok() ? "accepted" : status.error().message;
}

std::string of_callers(const char* recipe) {
  return refusal_of(
      {.recipe = find_recipe(recipe).value(), .local_step = LocalStep::kCallers});
}

// Nothing travels before the caller's step, which comes after the backward pass.
TEST(CallersStep, RefusesLayersThatTheBackwardPassIsToHide) {
  for (const char* recipe : {"dreamddp", "plsgd-enp"}) {
    EXPECT_EQ(of_callers(recipe), "recipe " + std::string(recipe) +
                                      ": with the caller's own optimizer layers travel after its "
                                      "step, so the backward pass hides none of them "
                                      "(dreamddp-late merges them late)");
  }
}

TEST(CallersStep, TakesLayersThatAreMergedLateOrAtTheEndOfAPeriod) {
  for (const char* recipe : {"dreamddp-late", "local-sgd-parts", "local-sgd", "wfbp"})
    EXPECT_EQ(of_callers(recipe), "accepted") << recipe;
}

}  // namespace
}  // namespace longhaul
