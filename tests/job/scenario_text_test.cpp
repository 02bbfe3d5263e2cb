#include "longhaul/job/scenario_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include "tests/job/catalogue_of_tests.h"

namespace longhaul {
namespace {

using testing::HasSubstr;

// The text of what `text` parses to.
std::string again(const std::string& text) {
  const Result<Scenario> scenario =
      parse_scenario(text, "elsewhere/other.toml", {}, catalogue_of_tests());
  return scenario.ok() ? scenario_toml(*scenario) : scenario.error().message;
}

TEST(ScenarioText, EveryBuiltInScenarioReadsBackAsItself) {
  for (const std::string& name : built_in_scenarios(catalogue_of_tests())) {
    const Result<Scenario> scenario = load_scenario(name, catalogue_of_tests(), {});
    ASSERT_TRUE(scenario.ok()) << scenario.error().message;
    const std::string text = scenario_toml(*scenario);
    EXPECT_EQ(again(text), text) << name;
  }
}

TEST(ScenarioText, HasWhatWasSetOverTheFile) {
  const Result<Scenario> scenario =
      load_scenario("smoke", catalogue_of_tests(),
                    {"train.lr=0.123456789", "link.up=1234567bit", "train.step_time=12.3456789ms",
                     "title=a \"quoted\" \\ title", "recipe.static.keep_ratio=1/3",
                     "recipes=static:delay_steps=2,auto"});
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  const std::string text = scenario_toml(*scenario);
  EXPECT_THAT(text, HasSubstr("\nlr = 0.123456789\n"));
  EXPECT_THAT(text, HasSubstr("\nup = \"1234567bit\"\n"));
  EXPECT_THAT(text, HasSubstr("\n[recipe.static]\nkeep_ratio = 0.3333333333333333\n"));
  EXPECT_THAT(text, HasSubstr("# static:delay_steps=2: codec top_k/bf16, keep ratio 0.3333, "
                              "delay 2, period 1, merge late, lr 0.123457\n"));
  EXPECT_THAT(text, HasSubstr("# auto: codec top_k/bf16, its planner chooses the rest"));
  EXPECT_EQ(again(text), text);
}

TEST(ScenarioText, EqualReplicasShareATable) {
  const Result<Scenario> scenario = load_scenario("smoke", catalogue_of_tests(), {});
  const std::string text = scenario_toml(*scenario);
  EXPECT_THAT(text, HasSubstr("\n[[replica]]\ncount = 2\n"));
  EXPECT_THAT(text, HasSubstr("\n[[replica]]\ncount = 1\nup = \"400kbit\"\n"));
}

TEST(ScenarioText, PathsAreAbsolute) {
  const Result<Scenario> scenario = load_scenario("fashion-varying", catalogue_of_tests(), {});
  const std::filesystem::path trace = std::filesystem::absolute("scenarios/varying.csv");
  EXPECT_THAT(scenario_toml(*scenario), HasSubstr("trace = \"" + trace.string() + '"'));
}

}  // namespace
}  // namespace longhaul
