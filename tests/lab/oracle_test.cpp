#include "longhaul/lab/oracle.h"

#include <gtest/gtest.h>

#include "longhaul/job/recipe_choice.h"
#include "longhaul/lab/run.h"

namespace longhaul::lab {
namespace {

RunResult finished(const std::string& recipe, std::uint64_t seed, double seconds) {
  RunResult run;
  run.recipe = recipe;
  run.seed = seed;
  if (seconds > 0) run.time_to_target = Seconds(seconds);
  return run;
}

TEST(Oracle, EveryFixedPlanIsARecipe) {
  EXPECT_GT(fixed_plans().size(), 30U);
  for (const std::string& plan : fixed_plans()) {
    ASSERT_TRUE(recipe_settings(plan).ok()) << plan;
    EXPECT_EQ(recipe_name(plan), "static");
  }
}

TEST(Oracle, TheBestFixedPlanIsTheOneWithTheLeastMeanOverSeeds) {
  const Verdict verdict = verdict_of({finished("auto", 1, 11), finished("auto", 2, 13),
                                      finished("clairvoyant", 1, 8), finished("clairvoyant", 2, 9),
                                      finished("static:keep_ratio=0.1:delay_steps=1", 1, 5),
                                      finished("static:keep_ratio=0.1:delay_steps=1", 2, 30),
                                      finished("static:keep_ratio=0.1:delay_steps=2", 1, 9),
                                      finished("static:keep_ratio=0.1:delay_steps=2", 2, 11)});
  EXPECT_EQ(verdict.best_fixed.recipe, "static:keep_ratio=0.1:delay_steps=2");
  EXPECT_DOUBLE_EQ(*verdict.best_fixed.time_s, 10);
  EXPECT_DOUBLE_EQ(*verdict.clairvoyant.time_s, 8.5);
  ASSERT_EQ(verdict.judged.size(), 1U);
  EXPECT_DOUBLE_EQ(*verdict.regret(verdict.judged[0]), 0.2);
  EXPECT_NE(verdict_text(verdict).find("20.0 % later"), std::string::npos);
}

TEST(Oracle, APlanThatMissesTheTargetOnOneSeedDoesNotCount) {
  const Verdict verdict =
      verdict_of({finished("clairvoyant", 1, 8), finished("clairvoyant", 2, 9),
                  finished("static:delay_steps=1", 1, 5), finished("static:delay_steps=1", 2, 0),
                  finished("static:delay_steps=2", 1, 5), finished("auto", 1, 3)});
  EXPECT_FALSE(verdict.best_fixed.time_s);
  ASSERT_EQ(verdict.judged.size(), 1U);
  EXPECT_FALSE(verdict.judged[0].time_s);
  EXPECT_FALSE(verdict.regret(verdict.judged[0]));
  EXPECT_NE(verdict_text(verdict).find("auto: not reached"), std::string::npos);
}

}  // namespace
}  // namespace longhaul::lab
