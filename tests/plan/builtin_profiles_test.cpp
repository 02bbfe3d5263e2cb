#include "longhaul/plan/builtin_profiles.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace longhaul {
namespace {

using ::testing::HasSubstr;

LayerProfile profile_named(std::string_view name) {
  Result<LayerProfile> profile = builtin_profile(name);
  EXPECT_TRUE(profile.ok());
  return std::move(profile).value();
}

double parameters_of(const LayerProfile& profile) { return profile.bytes() / 4; }

double forward_operations_of_a_sample(const LayerProfile& profile) {
  return profile.forward().count() * kProfileOperationsPerSecond /
         static_cast<double>(profile.batch);
}

TEST(BuiltinProfiles, HaveTheParametersOfTheirArchitectures) {
  EXPECT_EQ(parameters_of(profile_named("resnet-18")), 11'689'512);
  EXPECT_EQ(parameters_of(profile_named("resnet-50")), 25'557'032);
  EXPECT_EQ(parameters_of(profile_named("gpt2-124m")), 124'439'808);
  EXPECT_NEAR(parameters_of(profile_named("llama-175m")), 175e6, 1e6);
  EXPECT_EQ(parameters_of(profile_named("llama-1.3b")), 1'345'423'360);
}

TEST(BuiltinProfiles, HaveTheOperationsOfTheirArchitectures) {
  // As published: 1.8 and 4.1 billion multiplications with an addition for an image of 224 × 224.
  EXPECT_NEAR(forward_operations_of_a_sample(profile_named("resnet-18")), 2 * 1.81e9, 0.02e9);
  EXPECT_NEAR(forward_operations_of_a_sample(profile_named("resnet-50")), 2 * 4.09e9, 0.02e9);
  // Two for each parameter that multiplies a token, and the scores.
  EXPECT_NEAR(forward_operations_of_a_sample(profile_named("gpt2-124m")),
              1024 * (2 * 123.5e6 + 12 * 2 * 768.0 * 1024), 1e9);
  EXPECT_NEAR(forward_operations_of_a_sample(profile_named("llama-1.3b")),
              2048 * (2 * 1279.9e6 + 24 * 2 * 2048.0 * 2048), 1e9);
}

TEST(BuiltinProfiles, ABackwardPassIsTwoForwardPasses) {
  for (const std::string& name : builtin_profile_names()) {
    const LayerProfile profile = profile_named(name);
    EXPECT_LE(profile.backward(), 2 * profile.forward() + Seconds(1e-12)) << name;
    EXPECT_GE(profile.backward(), 1.9 * profile.forward()) << name;
  }
}

TEST(BuiltinProfiles, StandInBackwardOrder) {
  EXPECT_EQ(profile_named("resnet-50").layers.size(), 54U);
  EXPECT_EQ(profile_named("resnet-18").layers.front().name, "out");
  EXPECT_EQ(profile_named("resnet-18").layers.back().name, "conv1");
  EXPECT_EQ(profile_named("llama-1.3b").layers.front().name, "out");
  EXPECT_EQ(profile_named("llama-1.3b").layers.back().name, "tokens");
}

TEST(BuiltinProfiles, TiedEmbeddingsCountOnceAndAreReadyLast) {
  const LayerProfile gpt2 = profile_named("gpt2-124m");
  EXPECT_EQ(gpt2.layers.back().name, "tokens");
  EXPECT_EQ(gpt2.layers.back().bytes, 4 * 50'257 * 768.0);
  // The output side has the operations of the embedding, and only the bytes of its norm.
  EXPECT_EQ(gpt2.layers.front().name, "norm");
  EXPECT_EQ(gpt2.layers.front().bytes, 4 * 2 * 768.0);
  EXPECT_GT(gpt2.layers.front().backward, gpt2.backward() / 4);
}

TEST(BuiltinProfiles, AreReadLikeMeasuredOnes) {
  for (const std::string& name : builtin_profile_names()) {
    const auto json = profile_json(profile_named(name));
    const Result<LayerProfile> read = profile_from_json(json);
    ASSERT_TRUE(read.ok()) << name << ": " << read.error().message;
    EXPECT_EQ(profile_json(*read), json);
  }
}

TEST(BuiltinProfiles, AnUnknownNameGetsASuggestion) {
  EXPECT_THAT(builtin_profile("resnet50").error().message, HasSubstr("did you mean resnet-50?"));
  EXPECT_THAT(builtin_profile("gpt2").error().message, HasSubstr("did you mean gpt2-124m?"));
  EXPECT_THAT(builtin_profile("bert").error().message,
              HasSubstr("resnet-18, resnet-50, gpt2-124m, llama-175m, llama-1.3b"));
}

}  // namespace
}  // namespace longhaul
