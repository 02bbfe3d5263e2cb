// For every model, a learner tells of layers before their use and when their gradient is final.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/trainer/data_files.h"
#include "trainer/layer_profiler.h"
#include "trainer/workload.h"

namespace longhaul::trainer {
namespace {

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

// Once a layer was told of, nobody reads its parameters: what is written there changes nothing.
void expect_same_gradient_by_layers(TorchWorkload& workload) {
  const auto whole = workload.make_learner(0);
  const auto by_layers = workload.make_learner(0);
  for (int step = 0; step < 3; ++step) {
    std::vector<std::size_t> told;
    const std::vector<float> before = copy_of(by_layers->parameters());
    const auto ready = [&](std::size_t first, std::size_t count) {
      told.push_back(first);
      std::ranges::fill(by_layers->parameters().subspan(first, count), NAN);
    };
    const double loss = by_layers->compute_gradient_by_layers({.ready = ready});
    EXPECT_EQ(whole->compute_gradient(), loss);
    EXPECT_EQ(copy_of(whole->gradient()), copy_of(by_layers->gradient()));
    EXPECT_EQ(told.size(), workload.layers().size()) << "each layer once";
    std::ranges::sort(told);
    EXPECT_EQ(std::ranges::adjacent_find(told), told.end());
    std::ranges::copy(before, by_layers->parameters().begin());
  }
}

// The loss at parameters that are moved as layers are told of; where `is_told` is false, before the
// pass.
double gradient_at_moved_parameters(Learner& learner, const LayerTable& layers, bool is_told) {
  std::vector<std::size_t> told;
  const auto move = [&](std::size_t first, std::size_t count) {
    const auto part = learner.parameters().subspan(first, count);
    for (std::size_t i = 0; i < count; ++i)
      part[i] += 0.01F * std::sin(static_cast<float>(first + i));
  };
  if (!is_told) {
    move(0, learner.parameters().size());
    return learner.compute_gradient();
  }
  const auto before_use = [&](std::size_t first, std::size_t count) {
    told.push_back(first);
    move(first, count);
  };
  std::size_t final_elements = 0;
  const auto ready = [&](std::size_t, std::size_t count) { final_elements += count; };
  const double loss =
      learner.compute_gradient_by_layers({.before_use = before_use, .ready = ready});
  EXPECT_EQ(final_elements, learner.parameters().size());
  EXPECT_EQ(told.size(), layers.size());
  EXPECT_EQ(told.at(told.size() - 1), layers.front().offset) << "the last layer is used last";
  std::ranges::sort(told);
  for (std::size_t i = 0; i < std::min(told.size(), layers.size()); ++i)
    EXPECT_EQ(told[i], layers[i].offset) << "each layer once";
  return loss;
}

void expect_layers_are_told_of_before_their_use(TorchWorkload& workload) {
  const auto moved = workload.make_learner(0);
  const auto told = workload.make_learner(0);
  for (int step = 0; step < 3; ++step) {
    const double loss = gradient_at_moved_parameters(*moved, workload.layers(), false);
    EXPECT_EQ(gradient_at_moved_parameters(*told, workload.layers(), true), loss);
    EXPECT_EQ(copy_of(told->parameters()), copy_of(moved->parameters()));
    EXPECT_EQ(copy_of(told->gradient()), copy_of(moved->gradient()));
    const auto still = workload.make_learner(0);
    for (int skipped = 0; skipped < step; ++skipped) (void)still->compute_gradient();
    EXPECT_NE(still->compute_gradient(), loss) << "the move changes nothing";
  }
}

// Every model of the catalogue on small data, with dropout where it can have it.
void for_each_model(const std::function<void(TorchWorkload&)>& check) {
  const TestDirectory directory;
  write_easy_images(directory, 16, 400, 100);
  Bytes text;
  for (int i = 0; i < 4000; ++i) text.push_back(static_cast<std::uint8_t>('a' + i * i % 13));
  const auto file = directory.write("text", text);
  for (const ModelEntry& entry : model_table()) {
    SCOPED_TRACE(entry.name);
    WorkloadOptions options{.model = std::string(entry.name), .replicas = 2, .batch = 8};
    options.data = entry.reads_text ? DataOptions{.kind = "text", .path = file}
                                    : DataOptions{.kind = "mnist", .path = directory.path()};
    const auto is_dropout = [](const ModelOption& option) { return option.name == "dropout"; };
    if (std::ranges::any_of(entry.options, is_dropout)) options.knobs["dropout"] = 0.3;
    auto made = TorchWorkload::make(options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    check(**made);
  }
}

TEST(LayerWatch, EveryModelTellsOfLayersWhoseGradientIsFinal) {
  for_each_model(expect_same_gradient_by_layers);
}

TEST(LayerWatch, EveryModelTellsOfLayersBeforeTheirUse) {
  for_each_model(expect_layers_are_told_of_before_their_use);
}

void expect_a_profile(TorchWorkload& workload) {
  const Clock clock;
  const auto learner = workload.make_learner(0);
  LayerProfiler profiler(*learner, workload.layers(), clock);
  profiler.warm_up();
  profiler.step();
  const LayerProfile profile = profiler.profile(8);
  for (const LayerProfile::Layer& layer : profile.layers) {
    EXPECT_GT(layer.forward, Seconds(0)) << layer.name;
    EXPECT_GT(layer.backward, Seconds(0)) << layer.name;
  }
  EXPECT_LE(profile.forward() + profile.backward(), profiler.step_time_with_hooks());
  EXPECT_EQ(profile.bytes(), 4.0 * static_cast<double>(workload.initial_parameters().size()));
  EXPECT_TRUE(profile_from_json(profile_json(profile)).ok()) << "names differ";
}

TEST(LayerProfiler, MeasuresEveryModelAndTiedParametersOnce) {
  for_each_model([](TorchWorkload& workload) { expect_a_profile(workload); });
}

TEST(LayerProfiler, DoesNotChangeGradients) {
  for_each_model([](TorchWorkload& workload) {
    const Clock clock;
    const auto profiled = workload.make_learner(0);
    const auto plain = workload.make_learner(0);
    LayerProfiler(*profiled, workload.layers(), clock).warm_up();
    for (int i = 0; i < 2; ++i) (void)plain->compute_gradient();
    EXPECT_EQ(copy_of(profiled->gradient()), copy_of(plain->gradient()));
  });
}

}  // namespace
}  // namespace longhaul::trainer
