#include "trainer/layer_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/fake_clock.h"
#include "tests/trainer/data_files.h"

namespace longhaul::trainer {
namespace {

using testing::ElementsAre;

// Seconds that the parts of a step take.
struct Script {
  double load = 0;               // before the first use
  std::vector<double> forward;   // by tensor, in the order of the table
  std::vector<double> backward;  // by tensor, in the order of the table
  double rest = 0;               // behind the last gradient
  double hook = 0;               // of telling once
};

// Tells of its tensors as a script says.
class ScriptedLearner final : public Learner {
 public:
  ScriptedLearner(FakeClock& clock, LayerTable tensors, Script script)
      : script_(std::move(script)), clock_(clock), tensors_(std::move(tensors)) {
    parameters_.resize(tensors_.back().offset + tensors_.back().count);
  }

  void change(Script script) { script_ = std::move(script); }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradient() override { return parameters_; }
  double compute_gradient() override { return compute_gradient_by_layers({}); }
  double compute_gradient_by_layers(const LayerWatch& watch) override {
    pass(script_.load);
    for (std::size_t i = tensors_.size(); i-- > 0;) {
      tell(watch.before_use, tensors_[i]);
      pass(script_.forward[i]);
    }
    if (watch.forward_done) watch.forward_done();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      pass(script_.backward[i]);
      tell(watch.ready, tensors_[i]);
    }
    pass(script_.rest);
    return 1;
  }
  void save(State& /*state*/) const override {}
  Status load(const State& /*state*/) override { return Done{}; }

 private:
  void pass(double seconds) { clock_.advance(Seconds(seconds)); }
  void tell(const GradientReady& told, const Layer& tensor) {
    if (!told) return;
    pass(script_.hook);
    told(tensor.offset, tensor.count);
  }

  Script script_;
  FakeClock& clock_;
  LayerTable tensors_;
  std::vector<float> parameters_;
};

LayerTable table_of(const std::vector<std::pair<std::string, std::size_t>>& tensors) {
  LayerTable table;
  std::size_t offset = 0;
  for (const auto& [name, count] : tensors) {
    table.push_back({.name = name, .offset = offset, .count = count});
    offset += count;
  }
  return table;
}

LayerTable two_modules() {
  return table_of({{"out.bias", 2}, {"out.weight", 8}, {"conv.bias", 4}, {"conv.weight", 16}});
}

Script two_module_script() {
  return {.load = 1, .forward = {1, 2, 3, 4}, .backward = {8, 7, 6, 5}, .rest = 3};
}

TEST(LayerProfiler, AddsTheTensorsOfAModule) {
  FakeClock clock;
  ScriptedLearner learner(clock, two_modules(), two_module_script());
  LayerProfiler profiler(learner, two_modules(), clock);
  profiler.step();
  const LayerProfile profile = profiler.profile(32);
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.layers[0].name, "out");
  EXPECT_EQ(profile.layers[1].name, "conv");
  EXPECT_EQ(profile.layers[0].bytes, 40);
  EXPECT_EQ(profile.layers[1].bytes, 80);
  EXPECT_DOUBLE_EQ(profile.layers[0].forward.count(), 3);
  EXPECT_DOUBLE_EQ(profile.layers[1].forward.count(), 7);
  EXPECT_DOUBLE_EQ(profile.layers[0].backward.count(), 15);
  EXPECT_DOUBLE_EQ(profile.layers[1].backward.count(), 11);
  EXPECT_DOUBLE_EQ(profile.overhead_share, 4.0 / 40);
  EXPECT_EQ(profile.batch, 32U);
}

TEST(LayerProfiler, IgnoresAStepThatWasDisturbed) {
  FakeClock clock;
  ScriptedLearner learner(clock, two_modules(), two_module_script());
  LayerProfiler profiler(learner, two_modules(), clock);
  for (int step = 0; step < 5; ++step) {
    Script script = two_module_script();
    if (step == 2) script = {.load = 50, .forward = {9, 9, 9, 9}, .backward = {0, 0, 0, 90}};
    learner.change(script);
    profiler.step();
  }
  const LayerProfile profile = profiler.profile(1);
  EXPECT_DOUBLE_EQ(profile.layers[0].forward.count(), 3);
  EXPECT_DOUBLE_EQ(profile.layers[1].backward.count(), 11);
  EXPECT_DOUBLE_EQ(profile.overhead_share, 4.0 / 40);
  EXPECT_DOUBLE_EQ(profiler.step_time().count(), 40);
}

TEST(LayerProfiler, DoesNotCountWarmUp) {
  FakeClock clock;
  ScriptedLearner learner(clock, two_modules(), two_module_script());
  LayerProfiler profiler(learner, two_modules(), clock);
  Script slow = two_module_script();
  slow.load = 100;
  learner.change(slow);
  profiler.warm_up();
  learner.change(two_module_script());
  profiler.step();
  EXPECT_DOUBLE_EQ(profiler.step_time().count(), 40);
  EXPECT_DOUBLE_EQ(profiler.step_time_with_hooks().count(), 40);
}

TEST(LayerProfiler, TellsWhatItsHooksCost) {
  FakeClock clock;
  Script script = two_module_script();
  script.hook = 0.25;
  ScriptedLearner learner(clock, two_modules(), script);
  LayerProfiler profiler(learner, two_modules(), clock);
  for (int step = 0; step < 3; ++step) profiler.step();
  EXPECT_DOUBLE_EQ(profiler.step_time().count(), 40);
  EXPECT_DOUBLE_EQ(profiler.step_time_with_hooks().count(), 42);
}

TEST(LayerProfiler, LayersAndOverheadAreTheStep) {
  std::mt19937_64 random(3);
  std::exponential_distribution<double> time;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<std::pair<std::string, std::size_t>> tensors;
    Script script{.load = time(random), .rest = time(random), .hook = time(random) / 10};
    for (std::size_t i = 0; i <= random() % 20; ++i) {
      tensors.emplace_back(std::to_string(i / 3) + '.' + std::to_string(i), 1 + random() % 9);
      script.forward.push_back(time(random));
      script.backward.push_back(time(random));
    }
    FakeClock clock;
    const LayerTable table = table_of(tensors);
    ScriptedLearner learner(clock, table, script);
    LayerProfiler profiler(learner, table, clock);
    profiler.step();
    const LayerProfile profile = profiler.profile(1);
    const double in_layers = (profile.forward() + profile.backward()).count();
    const double step = profiler.step_time_with_hooks().count();
    EXPECT_NEAR(in_layers, step * (1 - profile.overhead_share), 1e-6);
    EXPECT_GT(profile.overhead_share, 0);
    EXPECT_EQ(profile.bytes(), 4.0 * static_cast<double>(learner.parameters().size()));
  }
}

TEST(LayerProfiler, ItsProfileIsReadBackFromAFile) {
  FakeClock clock;
  ScriptedLearner learner(clock, two_modules(), two_module_script());
  LayerProfiler profiler(learner, two_modules(), clock);
  profiler.step();
  const std::string text = profile_json(profiler.profile(8)).dump();
  const TestDirectory directory;
  const auto read = read_profile(directory.write("profile.json", {text.begin(), text.end()}));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(profile_json(*read).dump(), text);
}

TEST(ModulesOf, AreNeighboursWithTheSameNameBeforeTheLastDot) {
  const LayerTable modules = modules_of(
      table_of({{"out.bias", 1}, {"out.weight", 2}, {"a.b.w", 3}, {"a.w", 4}, {"tokens", 5}}));
  std::vector<std::string> names;
  for (const Layer& module : modules) names.push_back(module.name);
  EXPECT_THAT(names, ElementsAre("out", "a.b", "a", "tokens"));
  EXPECT_EQ(modules[0].count, 3U);
  EXPECT_EQ(modules[3].offset, 10U);
}

TEST(ModulesOf, HaveNamesOfTheirOwnAlsoWhereAModuleIsInTwoPlaces) {
  const LayerTable modules =
      modules_of(table_of({{"a.bias", 1}, {"b.weight", 2}, {"a.weight", 3}}));
  std::vector<std::string> names;
  for (const Layer& module : modules) names.push_back(module.name);
  EXPECT_THAT(names, ElementsAre("a", "b", "a.weight"));
}

}  // namespace
}  // namespace longhaul::trainer
