// Plans from a peer: what does not fit is an error and never an engine that cannot follow.
#include "longhaul/exchange/protocol.h"

#include <gtest/gtest.h>

#include "tests/round/random_plan.h"

namespace longhaul {
namespace {

TEST(PlanFrom, ReadsWhatWasWritten) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const Plan plan = random_plan(random);
    v1::Plan message;
    ASSERT_TRUE(message.ParseFromString(to_message(plan).SerializeAsString()));
    ASSERT_EQ(plan_from(message).value(), plan) << plan_text(plan);
  }
}

TEST(PlanFrom, RefusesAPlanBeyondTheLimits) {
  const auto refusal_of = [](const Plan& plan) {
    return plan_from(to_message(plan)).error().message;
  };
  EXPECT_EQ(refusal_of({.keep_ratio = 0}), "plan: keep_ratio outside (0, 1]");
  EXPECT_EQ(refusal_of({.period_steps = 0}), "plan: period_steps 0: expected 1 to 10000");
  EXPECT_EQ(refusal_of({.delay_steps = kMostDelaySteps + 1}),
            "plan: delay_steps 10001: expected 0 to 10000");
  EXPECT_EQ(refusal_of({.keep_ratios = {0.5, 0}}), "plan: keep_ratios outside (0, 1]");
  EXPECT_EQ(refusal_of({.keep_ratios = std::vector<double>(10'001, 0.5)}),
            "plan: keep_ratios of 10001 replicas: expected at most 10000");
}

TEST(PlanFrom, RefusesCountsThatNoIntHolds) {
  v1::Plan message = to_message(Plan{});
  message.set_delay_steps(0xFFFF'FFFF);
  EXPECT_FALSE(plan_from(message).ok());
  message = to_message(Plan{.merge = Merge::kLate});
  message.set_period_steps(0x8000'0001);
  EXPECT_FALSE(plan_from(message).ok());
}

TEST(LayersFrom, ReadsWhatWasWritten) {
  const LayerTable layers{{.name = "a", .count = 6, .shape = {2, 3}},
                          {.name = "b", .offset = 6, .count = 4}};
  EXPECT_EQ(layers_from(to_message(layers), 10).value(), layers);
}

TEST(LayersFrom, RefusesWhatDoesNotFitTheModel) {
  constexpr std::size_t kHuge = ~std::size_t{0};
  const LayerTable overlap{{.count = 6}, {.offset = 5, .count = 5}};
  const LayerTable gap{{.count = 4}, {.offset = 5, .count = 5}};
  for (const LayerTable& wrong : {overlap, gap, LayerTable{{.count = 9}}})
    EXPECT_FALSE(layers_from(to_message(wrong), 10).ok());
  for (const Layer& wrong :
       {Layer{.count = 11}, Layer{.offset = 10, .count = 1}, Layer{.offset = kHuge, .count = 2},
        Layer{.offset = 2, .count = kHuge}, Layer{.count = 0}, Layer{.count = 6, .shape = {2, 4}},
        Layer{.count = 6, .shape = {-2, -3}}, Layer{.count = 6, .shape = {0}},
        Layer{.count = 4, .shape = {1L << 62, 1L << 62, 4}}}) {
    EXPECT_FALSE(layers_from(to_message(LayerTable{wrong}), 10).ok()) << wrong.count;
  }
}

}  // namespace
}  // namespace longhaul
