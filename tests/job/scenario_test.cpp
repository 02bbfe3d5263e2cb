#include "longhaul/job/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "longhaul/job/scenario_keys.h"
#include "tests/job/catalogue_of_tests.h"

namespace longhaul {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSmall = R"(title = "Small"
[target]
value = 0.8
[link]
up = "20mbit"
latency = "60ms"
[[replica]]
count = 2
)";

Result<Scenario> parsed(const std::string& text, const std::vector<std::string>& settings = {}) {
  return parse_scenario(text, "dir/small.toml", settings, catalogue_of_tests());
}

// The message of the error that `extra` causes at the end of a scenario that is right otherwise.
std::string complaint(const std::string& extra, const std::vector<std::string>& settings = {}) {
  const Result<Scenario> scenario = parsed(kSmall + extra, settings);
  return scenario.ok() ? "no error" : scenario.error().message;
}

TEST(Scenario, TakesItsNameFromTheFileAndItsDefaultsFromTheStructs) {
  const Result<Scenario> scenario = parsed(kSmall);
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  EXPECT_EQ(scenario->name, "small");
  EXPECT_EQ(scenario->title, "Small");
  EXPECT_EQ(scenario->train.steps, TrainOptions{}.steps);
  EXPECT_EQ(scenario->replicas.size(), 2U);
  EXPECT_DOUBLE_EQ(scenario->replicas[1].link.up.bits_per_second(), 20e6);
  EXPECT_DOUBLE_EQ(scenario->replicas[1].link.latency.count(), 0.06);
  EXPECT_EQ(scenario->replicas[1].step_time, scenario->train.step_time);
}

TEST(Scenario, ReplicasPutTheirKeysOverTheLink) {
  const Result<Scenario> scenario = parsed(std::string(kSmall) + R"([[replica]]
up = "1mbit"
step_time = "90ms"
weight = 3
)");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  ASSERT_EQ(scenario->replicas.size(), 3U);
  EXPECT_DOUBLE_EQ(scenario->replicas[0].link.up.bits_per_second(), 20e6);
  EXPECT_DOUBLE_EQ(scenario->replicas[2].link.up.bits_per_second(), 1e6);
  EXPECT_DOUBLE_EQ(scenario->replicas[2].link.latency.count(), 0.06);
  EXPECT_DOUBLE_EQ(scenario->replicas[2].step_time.count(), 0.09);
  EXPECT_DOUBLE_EQ(scenario->replicas[2].weight, 3);
}

TEST(Scenario, ErrorsNameFileLineKeyAndWhatWasExpected) {
  EXPECT_EQ(complaint("[train]\nsteps = 0\n"),
            "dir/small.toml:10: train.steps: expected a whole number from 1 to 100000000, got 0");
  EXPECT_EQ(complaint("up = \"-3mbit\"\n"),
            "dir/small.toml:9: replica.up: expected a bandwidth above 0 such as \"20mbit\" (bit, "
            "kbit, mbit, gbit, tbit; bytes: B/s, kB/s, MB/s, GB/s), got \"-3mbit\"");
}

TEST(Scenario, RefusesValuesOutOfRange) {
  EXPECT_THAT(complaint("[recipe.d-ef-sgd]\nkeep_ratio = 0.0\n"),
              HasSubstr(":10: recipe.d-ef-sgd.keep_ratio: expected a ratio above 0"));
  EXPECT_THAT(complaint("[recipe.d-ef-sgd]\nkeep_ratio = \"3/2\"\n"), HasSubstr("keep_ratio"));
  EXPECT_THAT(complaint("[recipe.d-ef-sgd]\ncodec = \"zip\"\n"), HasSubstr("expected a codec"));
  EXPECT_THAT(complaint("[train]\nbatch = 0\n"), HasSubstr("train.batch: expected"));
  EXPECT_THAT(complaint("[train]\nlr = -1\n"), HasSubstr("train.lr: expected a number above 0"));
  EXPECT_THAT(complaint("[train]\nlr = nan\n"), HasSubstr("train.lr: expected"));
  EXPECT_THAT(complaint("[eval]\nevery = 11\n"), HasSubstr("from 1 to 10, got 11"));
  EXPECT_THAT(complaint("latency = \"5\"\n"), HasSubstr("replica.latency: expected a duration"));
}

TEST(Scenario, RefusesValuesOfAnotherType) {
  EXPECT_THAT(complaint("[train]\nsteps = \"400\"\n"), HasSubstr("got \"400\""));
  EXPECT_THAT(complaint("[train]\nsteps = 4.5\n"), HasSubstr("got 4.5"));
  EXPECT_THAT(complaint("[train]\nlr = true\n"), HasSubstr("got true"));
  EXPECT_THAT(complaint("up = 20\n"), HasSubstr("got 20"));
  EXPECT_THAT(complaint("[data]\nkind = [\"mnist\"]\n"), HasSubstr("got a list"));
}

TEST(Scenario, UnknownKeysSuggestTheNearestOne) {
  EXPECT_EQ(complaint("[train]\nstpes = 3\n"),
            "dir/small.toml:10: train.stpes: unknown key; did you mean train.steps?");
  EXPECT_THAT(complaint("[train]\nup = 3\n"), HasSubstr("did you mean link.up?"));
  EXPECT_THAT(complaint("[train]\nlearning_rate = 3\n"), HasSubstr("did you mean train.lr?"));
  EXPECT_THAT(complaint("[trian]\nsteps = 3\n"),
              HasSubstr("trian: unknown key; did you mean train?"));
  EXPECT_THAT(complaint("[recipe.dga]\ndelay = 3\n"), HasSubstr("recipe.dga.delay: unknown key"));
  EXPECT_THAT(complaint("[recipe.dga]\ndelay_step = 3\n"),
              HasSubstr("did you mean recipe.dga.delay_steps?"));
  EXPECT_THAT(complaint("[train]\nzzzzzz = 3\n"), HasSubstr("docs/scenario.md lists all keys"));
}

TEST(Scenario, RefusesTextThatIsNotToml) {
  EXPECT_THAT(complaint("[train\n"), StartsWith("dir/small.toml:9: "));
}

TEST(Scenario, RefusesTablesOfTheWrongForm) {
  EXPECT_THAT(parsed("train = 3\n").error().message, HasSubstr("train: expected a table [train]"));
  EXPECT_THAT(parsed("[replica]\ncount = 2\n").error().message, HasSubstr("[[replica]]"));
  EXPECT_THAT(parsed("replica = [1]\n").error().message, HasSubstr("[[replica]]"));
  EXPECT_THAT(parsed("recipe = 1\n").error().message, HasSubstr("[recipe.NAME]"));
  EXPECT_THAT(parsed("[recipe]\ndga = 1\n").error().message, HasSubstr("[recipe.NAME]"));
}

TEST(Scenario, NeedsAReplicaAndATarget) {
  EXPECT_THAT(parsed("[target]\nvalue = 0.5\n").error().message,
              HasSubstr("at least one [[replica]]"));
  EXPECT_THAT(parsed("[[replica]]\n").error().message, HasSubstr("target.value: expected"));
}

TEST(Scenario, RefusesKeysThatDoNotFitTogether) {
  EXPECT_THAT(complaint("[train]\nsteps = 5\nwarmup_steps = 6\n"),
              HasSubstr(":11: train.warmup_steps: expected at most train.steps (5), got 6"));
  EXPECT_THAT(complaint("[model]\nname = \"gpt\"\n"), HasSubstr("model.name: expected"));
  EXPECT_THAT(complaint("", {"target.value=1.5"}), HasSubstr("expected an accuracy"));
  EXPECT_EQ(complaint("", {"target.value=1.5", "target.metric=loss"}), "no error");
}

TEST(Scenario, KnowsTheRecipesThatItNames) {
  EXPECT_THAT(complaint("[recipe.magic]\nlr = 1\n"), HasSubstr(":10: recipe: expected one of"));
  EXPECT_THAT(complaint("", {"recipes=d-sgd,magic"}), HasSubstr("recipes: recipe: expected"));
  EXPECT_THAT(complaint("[recipe.Diloco]\nlr = 1\n"), HasSubstr("did you mean diloco?"));
  EXPECT_THAT(complaint("", {"recipes=dsgd"}), HasSubstr("did you mean d-sgd?"));
  const Result<Scenario> scenario = parsed(kSmall, {"recipes=d-sgd, dga:delay_steps=2"});
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  EXPECT_THAT(scenario->recipes, ElementsAre("d-sgd", "dga:delay_steps=2"));
}

TEST(Scenario, SettingsCountAsIfTheyStoodInTheFile) {
  const Result<Scenario> scenario = parsed(kSmall, {"link.up=1mbit", "train.step_time=10ms",
                                                    "replica.count=3", "recipe.dga.delay_steps=7"});
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  ASSERT_EQ(scenario->replicas.size(), 3U);
  EXPECT_DOUBLE_EQ(scenario->replicas[0].link.up.bits_per_second(), 1e6);
  EXPECT_DOUBLE_EQ(scenario->replicas[0].step_time.count(), 0.01);
  EXPECT_EQ(scenario->overrides.at("dga").delay_steps, 7);
}

TEST(Scenario, ASettingEndsAtItsFirstEqualsSign) {
  EXPECT_EQ(parsed(kSmall, {"title=a=b"})->title, "a=b");
  EXPECT_EQ(parsed(kSmall, {"title="})->title, "");
}

TEST(Scenario, ErrorsOfSettingsNameTheSetting) {
  EXPECT_EQ(complaint("", {"link.up=0mbit"}),
            "--set link.up=0mbit: link.up: expected a bandwidth above 0 such as \"20mbit\" (bit, "
            "kbit, mbit, gbit, tbit; bytes: B/s, kB/s, MB/s, GB/s), got 0mbit");
  EXPECT_THAT(complaint("", {"link.upp=1"}), HasSubstr("did you mean link.up?"));
  EXPECT_THAT(complaint("", {"recipe.lr=1"}), HasSubstr("did you mean recipe.NAME.lr?"));
  EXPECT_THAT(complaint("", {"outer_lr=1"}), HasSubstr("did you mean recipe.NAME.outer_lr?"));
}

TEST(Scenario, ALearningRateFromTheCommandLineWinsOverThatOfARecipe) {
  const std::string text = std::string(kSmall) + "[recipe.dga]\nlr = 0.5\n";
  EXPECT_EQ(parsed(text)->overrides.at("dga").lr, 0.5);
  EXPECT_EQ(parsed(text, {"train.lr=0.1"})->overrides.at("dga").lr, std::nullopt);
  EXPECT_EQ(parsed(text, {"recipe.dga.lr=0.2", "train.lr=0.1"})->overrides.at("dga").lr, 0.2);
}

TEST(Scenario, PathsInAFileAreRelativeToIt) {
  const std::string text = std::string(kSmall) + "trace = \"rates.csv\"\n";
  EXPECT_EQ(parsed(text)->replicas[0].link.trace, "dir/rates.csv");
  EXPECT_EQ(parsed(text, {"replica.trace=x.csv"})->replicas[0].link.trace, "x.csv");
}

TEST(Scenario, UnknownNamesListTheBuiltInOnes) {
  const Result<Scenario> scenario = load_scenario("nowhere", catalogue_of_tests(), {});
  ASSERT_FALSE(scenario.ok());
  EXPECT_EQ(scenario.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(scenario.error().message, HasSubstr("fashion-wan"));
}

TEST(Scenario, NamesThatAreNearlyRightAreSuggested) {
  const auto message = [](const std::string& name) {
    return load_scenario(name, catalogue_of_tests(), {}).error().message;
  };
  EXPECT_THAT(message("fasion-wan"), HasSubstr("did you mean fashion-wan? (cifar-wan, demo, "));
  EXPECT_THAT(message("Smoke"), HasSubstr("did you mean smoke?"));
  EXPECT_THAT(message("fashion-wan.toml"), HasSubstr("did you mean fashion-wan?"));
  EXPECT_THAT(message("scenarios/smok.toml"), HasSubstr("did you mean scenarios/smoke.toml?"));
}

TEST(Scenario, AFileOfTheUserIsSuggestedWithItsEnding) {
  const std::string name = testing::TempDir() + "longhaul_three";
  std::ofstream(name + ".toml") << kSmall;
  EXPECT_THAT(load_scenario(name, catalogue_of_tests(), {}).error().message,
              HasSubstr("did you mean " + name + ".toml?"));
  std::filesystem::remove(name + ".toml");
}

TEST(Scenario, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(load_scenario("no/such.toml", catalogue_of_tests(), {}).error().message,
              HasSubstr("no/such.toml: cannot open: No such file or directory"));
  EXPECT_THAT(load_scenario("./tests", catalogue_of_tests(), {}).error().message,
              HasSubstr("./tests: cannot read: Is a directory"));
}

TEST(Scenario, OfAProgramWithoutModelsMayNameAny) {
  const std::string own = std::string(kSmall) + "[model]\nname = \"mine\"\n";
  EXPECT_FALSE(parsed(own).ok());
  const Result<Scenario> scenario = parse_scenario(own, "own.toml", {}, {});
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  EXPECT_EQ(scenario->model.name, "mine");
}

TEST(BuiltInScenarios, AllParseAndNameTheirRecipes) {
  const std::vector<std::string> names = built_in_scenarios(catalogue_of_tests());
  EXPECT_THAT(names, ElementsAre("cifar-wan", "demo", "fashion-layers", "fashion-noniid",
                                 "fashion-varying", "fashion-wan", "smoke", "text-wan"));
  for (const std::string& name : names) {
    const Result<Scenario> scenario = load_scenario(name, catalogue_of_tests(), {});
    ASSERT_TRUE(scenario.ok()) << scenario.error().message;
    EXPECT_EQ(scenario->name, name);
    EXPECT_FALSE(scenario->title.empty()) << name;
    EXPECT_FALSE(scenario->recipes.empty()) << name;
    for (const ReplicaOptions& replica : scenario->replicas)
      EXPECT_TRUE(replica.link.trace.empty() || std::filesystem::exists(replica.link.trace))
          << name;
  }
}

// Rows "| `key` | `default` | expected | meaning |" of the tables, in order.
std::vector<std::string> documented_keys() {
  std::ifstream page("docs/scenario.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    std::size_t end = 1;
    for (int column = 0; column < 3; ++column) end = line.find(" |", end + 1);
    rows.push_back(line.substr(0, end));
    EXPECT_GT(line.size(), end + 6) << "no meaning: " << line;
  }
  return rows;
}

TEST(ScenarioPage, ListsEveryKeyWithItsDefaultAndWhatIsExpected) {
  std::vector<std::string> rows;
  for (const ScenarioKey& key : scenario_keys(catalogue_of_tests()))
    rows.push_back("| `" + key.full_name() + "` | `" + key.fallback + "` | " + key.expected);
  EXPECT_EQ(documented_keys(), rows);
}

}  // namespace
}  // namespace longhaul
