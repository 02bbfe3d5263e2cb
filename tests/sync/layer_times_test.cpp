#include "longhaul/sync/layer_times.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "longhaul/sync/engine_options.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// In backward order: 10 elements, 1,000 in two tensors, 90.
LayerTable three_layers() {
  return {{.name = "out.weight", .offset = 0, .count = 10},
          {.name = "hidden.bias", .offset = 10, .count = 100},
          {.name = "hidden.weight", .offset = 110, .count = 900},
          {.name = "tokens", .offset = 1010, .count = 90}};
}

TEST(LayerTimes, TakesTensorsOfOneModuleForOneLayer) {
  const LayerProfile layers = layer_times(three_layers(), {}).value();
  ASSERT_EQ(layers.layers.size(), 3U);
  EXPECT_EQ(layers.layers[1].name, "hidden");
  EXPECT_EQ(layers.layers[1].bytes, 4000);
  EXPECT_EQ(layers.layers[2].name, "tokens");
}

TEST(LayerTimes, AreInProportionToSizeIfNobodyKnowsThem) {
  const LayerProfile layers = layer_times(three_layers(), {}).value();
  EXPECT_NEAR(layers.layers[1].backward / layers.layers[0].backward, 100, 1e-9);
  EXPECT_NEAR(layers.backward() / layers.forward(), 2, 1e-9);
}

TEST(LayerTimes, NamesTheLayersThatItExpected) {
  LayerProfile times;
  for (const char* name : {"out", "hiden", "tokens"})
    times.layers.push_back({.name = name, .backward = Seconds(1)});
  const Result<LayerProfile> layers = layer_times(three_layers(), times);
  ASSERT_FALSE(layers.ok());
  EXPECT_THAT(layers.error().message, HasSubstr("out, hidden, tokens; got out, hiden, tokens"));
  times.layers[1].name = "hidden";
  EXPECT_EQ(layer_times(three_layers(), times)->layers[1].backward, Seconds(1));
}

TEST(LayerParts, CoverTheModelAndAreNeitherSmallNorLarge) {
  const LayerProfile layers = layer_times(three_layers(), {}).value();
  const LayerProfile parts = in_parts(layers);
  EXPECT_EQ(parts.bytes(), layers.bytes());
  EXPECT_NEAR((parts.forward() + parts.backward()) / (layers.forward() + layers.backward()), 1,
              1e-12);
  for (const LayerProfile::Layer& part : parts.layers) {
    EXPECT_LE(part.bytes, layers.bytes() / 16 + 4) << part.name;
    EXPECT_GE(part.bytes, layers.bytes() / 64) << part.name;
    EXPECT_EQ(std::fmod(part.bytes, 4), 0) << part.name;
  }
}

TEST(LayerParts, AreThoseOfTheEngine) {
  EngineOptions options{.layers = three_layers()};
  EXPECT_EQ(parts_of(options, 1100).size(), 1U);
  options.recipe.is_by_layer = true;
  const LayerProfile parts = part_times(options);
  const std::vector<Part> of_engine = parts_of(options, 1100);
  ASSERT_EQ(of_engine.size(), parts.layers.size());
  EXPECT_GT(of_engine.size(), 10U);
  std::size_t first = 0;
  for (const Part& part : of_engine) {
    EXPECT_EQ(part.first, first);
    first += part.count;
  }
  EXPECT_EQ(first, 1100U);
  options.layers.clear();  // a hub before the first join
  EXPECT_EQ(parts_of(options, 1100).size(), 1U);
}

// A piece is ready, and needed again, when its layer is.
TEST(LayerPieces, AreReadyAndNeededWithTheirLayer) {
  const LayerProfile whole{
      .layers = {{.name = "out", .forward = Seconds(1), .backward = Seconds(2), .bytes = 4},
                 {.name = "in", .forward = Seconds(3), .backward = Seconds(4), .bytes = 40}}};
  const LayerProfile cut = in_pieces(whole, 16);
  ASSERT_EQ(cut.layers.size(), 4U);
  EXPECT_EQ(cut.layers[1].name, "in/1");
  EXPECT_EQ(cut.layers[1].backward, Seconds(4));  // the other pieces are ready with it
  EXPECT_EQ(cut.layers[2].backward, Seconds(0));
  EXPECT_EQ(cut.layers[1].forward, Seconds(3));  // the last of them that a forward pass meets
  EXPECT_EQ(cut.layers[3].forward, Seconds(0));
  EXPECT_EQ(cut.layers[1].bytes + cut.layers[2].bytes + cut.layers[3].bytes, 40);
}

}  // namespace
}  // namespace longhaul
