#include "longhaul/lab/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/job/catalogue_of_tests.h"

namespace longhaul::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StudyOptions smoke() { return {.scenario = "smoke", .catalogue = catalogue_of_tests()}; }

TEST(Study, RunsTheRecipesAndTheSeedOfTheScenarioByDefault) {
  const auto points = study_points(smoke());
  ASSERT_TRUE(points.ok()) << points.error().message;
  ASSERT_EQ(points->size(), 1U);
  EXPECT_EQ(points->front().train.seed, 1U);
  EXPECT_EQ(points->front().search, "");
  const Scenario scenario = load_scenario("smoke", catalogue_of_tests(), {}).value();
  EXPECT_EQ(points->front().recipes, scenario.recipes);
}

TEST(Study, CombinesEverySettingOfTheGridWithEverySeed) {
  StudyOptions request = smoke();
  request.seeds = {4, 5};
  request.grid.push_back({"train.lr=0.1", "train.lr=0.2"});
  request.grid.push_back({"train.batch=8", "train.batch=16"});
  const auto points = study_points(request);
  ASSERT_TRUE(points.ok()) << points.error().message;
  ASSERT_EQ(points->size(), 8U);
  EXPECT_EQ(points->at(2).search, "train.lr=0.1 train.batch=16");
  EXPECT_EQ(points->at(2).train.lr, 0.1);
  EXPECT_EQ(points->at(2).train.batch, 16U);
  EXPECT_EQ(points->at(3).train.seed, 5U);
}

TEST(Study, FindsWrongUseBeforeTheFirstRun) {
  StudyOptions request = smoke();
  request.recipes = {"d-sgd", "magic"};
  EXPECT_THAT(study_points(request).error().message, HasSubstr("magic"));
  request.recipes = {"d-sgd", "static", "d-sgd"};
  EXPECT_THAT(study_points(request).error().message,
              HasSubstr("each recipe once, got d-sgd twice"));
  request = smoke();
  request.grid.push_back({"train.lr=0.1", "train.lr=fast"});
  EXPECT_THAT(study_points(request).error().message, HasSubstr("train.lr=fast"));
}

TEST(Study, RefusesGridsThatWouldNeverEnd) {
  StudyOptions request = smoke();
  request.grid.assign(3, std::vector<std::string>(100, "train.lr=0.1"));
  EXPECT_THAT(study_points(request).error().message, HasSubstr("--grid"));
}

TEST(StudyTest, AreReadAsPeopleWriteThem) {
  EXPECT_THAT(*parse_seeds("1, 22"), ElementsAre(1, 22));
  EXPECT_TRUE(check_settings({"data.path=a=b", "data.path="}).ok());
  EXPECT_THAT(*parse_grid_axis("train.lr=1,2"), ElementsAre("train.lr=1", "train.lr=2"));
}

TEST(StudyTest, SayWhatTheyExpect) {
  EXPECT_THAT(parse_seeds("1,x").error().message, HasSubstr("such as 1,2,3, got 1,x"));
  EXPECT_THAT(parse_seeds("").error().message, HasSubstr("got none"));
  EXPECT_THAT(parse_seeds("1,2,1").error().message, HasSubstr("each seed once, got 1 twice"));
  EXPECT_THAT(check_settings({"lr"}).error().message, HasSubstr("table.key=value"));
  EXPECT_THAT(parse_grid_axis("train.lr=").error().message, HasSubstr("value,value"));
  EXPECT_THAT(parse_grid_axis("train.lr=0.1, 0.1").error().message,
              HasSubstr("each value once, got 0.1 twice"));
}

}  // namespace
}  // namespace longhaul::lab
