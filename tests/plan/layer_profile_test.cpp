#include "longhaul/plan/layer_profile.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace longhaul {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(LayerProfile, IsTheSameAfterWritingAndReading) {
  const LayerProfile profile{
      .layers = {{.name = "out", .backward = Seconds(0.2), .bytes = 40},
                 {.name = "in", .forward = Seconds(0.1), .backward = Seconds(0.3), .bytes = 80}},
      .batch = 32,
      .overhead_share = 0.01};
  const Result<LayerProfile> read = profile_from_json(profile_json(profile));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(profile_json(*read), profile_json(profile));
  EXPECT_EQ(read->forward(), Seconds(0.1));
  EXPECT_EQ(read->backward(), Seconds(0.5));
  EXPECT_EQ(read->bytes(), 120);
}

TEST(LayerProfile, NamesTheLayerThatIsWrong) {
  const auto error_of = [](const char* text) {
    const Result<LayerProfile> profile = profile_from_json(ordered_json::parse(text));
    return profile.ok() ? std::string("none") : profile.error().message;
  };
  EXPECT_THAT(error_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error_of(R"({"layers": []})"), HasSubstr("expected 1 to"));
  EXPECT_THAT(error_of(R"({"layers": [{"name": "a", "t_fp_s": 1, "t_bp_s": -1, "bytes": 1}]})"),
              HasSubstr("layer 1: t_bp_s"));
  EXPECT_THAT(error_of(R"({"layers": [{"name": "a", "t_fp_s": 1, "t_bp_s": 1, "bytes": 1},
                                      {"name": "a", "t_fp_s": 1, "t_bp_s": 1, "bytes": 1}]})"),
              HasSubstr("occurs twice"));
  EXPECT_THAT(error_of(R"({"layers": [{"name": "a", "t_fp_s": 0, "t_bp_s": 0, "bytes": 1}]})"),
              HasSubstr("no layer takes any time"));
}

TEST(LayerProfile, SaysWhichFileIsMissing) {
  const Result<LayerProfile> profile = read_profile("/nonexistent/profile.json");
  ASSERT_FALSE(profile.ok());
  EXPECT_THAT(profile.error().message, HasSubstr("/nonexistent/profile.json"));
}

}  // namespace
}  // namespace longhaul
