#include "trainer/model_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/catalogue.h"

namespace longhaul::trainer {
namespace {

using testing::HasSubstr;

std::string complaint(const std::string& name, const ModelKnobs& given) {
  const auto entry = find_model(name);
  if (!entry.ok()) return entry.error().message;
  const auto knobs = complete_knobs(**entry, given);
  return knobs.ok() ? "ok" : knobs.error().message;
}

TEST(ModelTable, HoldsTheModelsOfTheCatalogue) {
  std::vector<std::string> images;
  std::vector<std::string> text;
  for (const ModelEntry& entry : model_table())
    (entry.reads_text ? text : images).emplace_back(entry.name);
  EXPECT_EQ(images, catalogue().image_models);
  EXPECT_EQ(text, catalogue().text_models);
}

TEST(ModelTable, DefaultsAreWithinTheirOwnRanges) {
  for (const ModelEntry& entry : model_table()) {
    ModelKnobs knobs;
    for (const ModelOption& option : entry.options) {
      knobs.emplace(option.name, option.default_value);
    }
    EXPECT_EQ(complaint(std::string(entry.name), knobs), "ok");
  }
}

TEST(ModelTable, FillsInDefaults) {
  const auto knobs = complete_knobs(*find_model("gpt").value(), {{"layers", 3}});
  ASSERT_TRUE(knobs.ok());
  EXPECT_EQ(knobs->at("layers"), 3);
  EXPECT_EQ(knobs->at("heads"), 4);
}

TEST(ModelTable, NamesWhatIsWrong) {
  EXPECT_THAT(complaint("vgg", {}),
              HasSubstr("\"vgg\" is unknown; expected one of softmax, mlp, cnn, resnet, gpt"));
  EXPECT_THAT(complaint("mlp", {{"depth", 2}}),
              HasSubstr("no option \"depth\"; it has: layers, width, dropout"));
  EXPECT_THAT(complaint("softmax", {{"width", 2}}), HasSubstr("it has: none"));
  EXPECT_THAT(complaint("mlp", {{"layers", 1.5}}),
              HasSubstr("layers is a whole number from 1 to 64, got 1.5"));
  EXPECT_THAT(complaint("mlp", {{"width", 0}}), HasSubstr("got 0"));
  EXPECT_THAT(complaint("gpt", {{"heads", 3}}), HasSubstr("heads does not divide width"));
  EXPECT_THAT(complaint("resnet", {{"groups", 5}}), HasSubstr("groups does not divide width"));
}

}  // namespace
}  // namespace longhaul::trainer
