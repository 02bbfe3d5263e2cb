#include "trainer/model_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/catalogue.h"

namespace longhaul::trainer {
namespace {

using testing::HasSubstr;

std::string complaint(const ModelConfig& config) {
  const auto chosen = choose_model(config);
  return chosen.ok() ? "ok" : chosen.error().message;
}

TEST(ModelTable, HoldsTheModelsOfTheCatalogue) {
  std::vector<std::string> images;
  std::vector<std::string> text;
  for (const ModelEntry& entry : model_table())
    (entry.input == InputKind::kText ? text : images).emplace_back(entry.name);
  EXPECT_EQ(images, catalogue().image_models);
  EXPECT_EQ(text, catalogue().text_models);
}

TEST(ModelTable, DefaultsAreWithinTheirOwnRanges) {
  for (const ModelEntry& entry : model_table()) {
    ModelConfig config{.name = std::string(entry.name), .options = {}};
    for (const ModelOption& option : entry.options) {
      config.options.emplace(option.name, option.default_value);
    }
    EXPECT_EQ(complaint(config), "ok");
  }
}

TEST(ModelTable, FillsInDefaults) {
  const auto chosen = choose_model({.name = "gpt", .options = {{"layers", 3}}});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->options.at("layers"), 3);
  EXPECT_EQ(chosen->options.at("heads"), 4);
}

TEST(ModelTable, NamesWhatIsWrong) {
  EXPECT_THAT(complaint({.name = "vgg", .options = {}}),
              HasSubstr("\"vgg\" is unknown; expected one of softmax, mlp, cnn, resnet, gpt"));
  EXPECT_THAT(complaint({.name = "mlp", .options = {{"depth", 2}}}),
              HasSubstr("no option \"depth\"; it has: layers, width, dropout"));
  EXPECT_THAT(complaint({.name = "softmax", .options = {{"width", 2}}}), HasSubstr("it has: none"));
  EXPECT_THAT(complaint({.name = "mlp", .options = {{"layers", 1.5}}}),
              HasSubstr("layers is a whole number from 1 to 64, got 1.5"));
  EXPECT_THAT(complaint({.name = "mlp", .options = {{"width", 0}}}), HasSubstr("got 0"));
  EXPECT_THAT(complaint({.name = "gpt", .options = {{"heads", 3}}}),
              HasSubstr("heads does not divide width"));
  EXPECT_THAT(complaint({.name = "resnet", .options = {{"groups", 5}}}),
              HasSubstr("groups does not divide width"));
}

}  // namespace
}  // namespace longhaul::trainer
