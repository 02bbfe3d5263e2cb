// Plans from a peer: what does not fit is an error and never an engine that cannot follow.
#include "longhaul/exchange/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST(PlanFrom, ReadsWhatWasWritten) {
  const Plan plan{.keep_ratio = 0.05, .delay_steps = 3, .merge = Merge::kLate};
  EXPECT_EQ(plan_from(to_message(plan)).value(), plan);
}

TEST(PlanFrom, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(plan_from(to_message(Plan{.keep_ratio = 0})).error().message,
              HasSubstr("out of range"));
  EXPECT_THAT(plan_from(to_message(Plan{.period_steps = 0})).error().message,
              HasSubstr("out of range"));
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
