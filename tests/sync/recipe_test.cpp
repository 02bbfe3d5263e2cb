// The table of recipes: found by name, and every row one that the engine can run.
#include "longhaul/sync/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST(Recipes, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const Recipe& recipe : all_recipes())
    EXPECT_TRUE(names.insert(recipe.name).second) << recipe.name;
}

TEST(Recipes, AreFoundByName) {
  for (const Recipe& recipe : all_recipes()) {
    const Result<Recipe> found = find_recipe(recipe.name);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->name, recipe.name);
    EXPECT_EQ(found->plan, recipe.plan);
  }
}

TEST(Recipes, AnUnknownNameIsAnErrorThatSuggestsOneOrListsThemAll) {
  for (const std::string_view name : {"d-sg", "D-SGD", "d-sgd "}) {
    const Result<Recipe> found = find_recipe(name);
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(found.error().message, HasSubstr('"' + std::string(name) + '"'));
    EXPECT_THAT(found.error().message, HasSubstr("did you mean d-sgd?"));
  }
  for (const std::string_view name : {"", "gradient descent"}) {
    const Result<Recipe> found = find_recipe(name);
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
    for (const Recipe& recipe : all_recipes())
      EXPECT_THAT(found.error().message, HasSubstr(std::string(recipe.name)));
  }
}

TEST(Recipes, AreRowsThatTheEngineCanRun) {
  Workers alone;
  for (const Recipe& recipe : all_recipes()) {
    SCOPED_TRACE(recipe.name);
    EXPECT_FALSE(recipe.summary.empty());
    EXPECT_GT(recipe.plan.keep_ratio, 0);
    EXPECT_LE(recipe.plan.keep_ratio, 1);
    EXPECT_GE(recipe.plan.delay_steps, 0);
    EXPECT_GE(recipe.plan.period_steps, 1);
    EXPECT_TRUE(recipe.plan.period_steps == 1 || has_local_steps(recipe.plan.merge));
    const int periods = recipe.local.delay_periods;
    EXPECT_TRUE(periods == 0 || recipe.plan.delay_steps == periods * recipe.plan.period_steps);
    EXPECT_NE(make_codec(recipe.codec, {}, alone), nullptr);
    EXPECT_TRUE(parse_codec(recipe.codec.name()).ok());
  }
}

// What the names promise.
TEST(Recipes, DelayAndCompressionFollowTheName) {
  EXPECT_TRUE(find_recipe("ideal")->is_free);
  EXPECT_FALSE(find_recipe("d-sgd")->is_free);
  EXPECT_EQ(find_recipe("d-sgd")->plan, (Plan{.keep_ratio = 1, .delay_steps = 0}));
  EXPECT_EQ(find_recipe("d-sgd")->codec.values, ValueFormat::kFp32);
  EXPECT_EQ(find_recipe("d-ef-sgd")->plan.delay_steps, 0);
  EXPECT_LT(find_recipe("d-ef-sgd")->plan.keep_ratio, 1);
  EXPECT_GT(find_recipe("dd-sgd")->plan.delay_steps, 0);
  EXPECT_EQ(find_recipe("dd-sgd")->plan.keep_ratio, 1);
  EXPECT_GT(find_recipe("dd-ef-sgd")->plan.delay_steps, 0);
  EXPECT_LT(find_recipe("dd-ef-sgd")->plan.keep_ratio, 1);
  EXPECT_TRUE(find_recipe("dd-ef-sgd")->keeps_residual);
  EXPECT_EQ(find_recipe("dga")->plan.merge, Merge::kOwnStep);
  EXPECT_GT(find_recipe("local-sgd")->plan.period_steps, 1);
  EXPECT_EQ(find_recipe("local-sgd")->plan.delay_steps, 0);
  EXPECT_EQ(find_recipe("cocod-sgd")->local.delay_periods, 1);
  EXPECT_EQ(find_recipe("cocod-sgd")->plan.keep_ratio, 1);
  EXPECT_LT(find_recipe("olco3-oc")->plan.keep_ratio, 1);
}

}  // namespace
}  // namespace longhaul
