// Which recipes an engine refuses, and the reason that it gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "longhaul/sync/engine.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const EngineOptions& options) {
  const Status status = check_plan(options.recipe.plan, options);
  return status.ok() ? "accepted" : status.error().message;
}

EngineOptions with(const Recipe& recipe, LocalStep local_step, bool averages_in_place) {
  return {.recipe = recipe, .local_step = local_step, .averages_in_place = averages_in_place};
}

std::string of_callers(const char* recipe) {
  return refusal_of(with(find_recipe(recipe).value(), LocalStep::kCallers, false));
}

std::string in_place(const Recipe& recipe) {
  return refusal_of(with(recipe, LocalStep::kOurs, true));
}
std::string in_place(const char* recipe) { return in_place(find_recipe(recipe).value()); }

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

TEST(AverageInPlace, TakesDenseRecipesWithoutDelay) {
  for (const char* recipe :
       {"d-sgd", "wfbp", "local-sgd", "local-sgd-parts", "plsgd-enp", "dreamddp"})
    EXPECT_EQ(in_place(recipe), "accepted") << recipe;
}

TEST(AverageInPlace, RefusesWhatIsNotSentAsItIs) {
  EXPECT_EQ(in_place("static"), "an all-reduce sums dense/fp32, not top_k/bf16");
  EXPECT_EQ(in_place("d-sgd-bf16"), "an all-reduce sums dense/fp32, not dense/bf16");
  Recipe two_way = find_recipe("local-sgd").value();
  two_way.is_two_way = true;
  EXPECT_EQ(in_place(two_way), "an all-reduce sums means that nobody compresses");
}

TEST(AverageInPlace, RefusesADelayAndAPlannerThatMayChooseOne) {
  Recipe planned = find_recipe("deco").value();
  planned.codec = parse_codec("dense/fp32").value();
  for (const Recipe& recipe :
       {find_recipe("dd-sgd").value(), find_recipe("dreamddp-late").value(), planned})
    EXPECT_THAT(in_place(recipe), HasSubstr("takes no delay")) << recipe.name;
}

TEST(AverageInPlace, RefusesOtherMergeRulesAndTheCallersStep) {
  EXPECT_EQ(in_place("diloco"), "an all-reduce needs merge rule late or optimizer, not outer");
  EXPECT_EQ(refusal_of(with(find_recipe("local-sgd").value(), LocalStep::kCallers, true)),
            "an all-reduce needs Longhaul's own optimizer");
}

}  // namespace
}  // namespace longhaul
