// What each rule does with a replica's own gradient and with the mean that comes later.
#include "longhaul/sync/merge_rule.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;
using Floats = std::vector<float>;

constexpr OptimizerSpec kPlainSgd{.kind = OptimizerKind::kSgd};

Mean mean_of(std::uint64_t step, Floats values) {
  return {.round = {.step = step}, .values = std::make_shared<const Floats>(std::move(values))};
}

TEST(OptimizerRule, OnlyTheMeanMovesParameters) {
  Floats parameters{1, 2, 3};
  const auto rule = make_merge_rule(Merge::kOptimizer, kPlainSgd, parameters);
  rule->gradient_ready({.step = 0, .lr = 0.5}, Floats{9, 9, 9}, parameters);
  EXPECT_EQ(parameters, (Floats{1, 2, 3}));
  rule->merge({.step = 4, .lr = 0.5}, {.first = 0, .count = 3}, mean_of(0, {2, 4, 6}), parameters);
  EXPECT_EQ(parameters, (Floats{0, 0, 0}));
  EXPECT_EQ(rule->shared(parameters).data(), parameters.data());
}

TEST(OptimizerRule, MovesOnlyThePartThatTheMeanCovers) {
  Floats parameters{1, 2, 3, 4};
  const auto rule = make_merge_rule(Merge::kOptimizer, {}, parameters);
  rule->merge({.step = 0, .lr = 1}, {.first = 1, .count = 2}, mean_of(0, {1, 1}), parameters);
  EXPECT_EQ(parameters, (Floats{1, 1, 2, 4}));
}

TEST(OptimizerRule, RefusesAMeanOfAnotherSize) {
  Floats parameters{1, 2, 3};
  const auto rule = make_merge_rule(Merge::kOptimizer, {}, parameters);
  EXPECT_THROW(rule->merge({}, {.first = 0, .count = 3}, mean_of(0, {1, 1}), parameters),
               std::logic_error);
}

TEST(OwnStepRule, StepsWithItsOwnGradientAndSharesOnlyMeans) {
  Floats parameters{1, 2};
  const auto rule = make_merge_rule(Merge::kOwnStep, kPlainSgd, parameters);
  rule->gradient_ready({.step = 0, .lr = 0.5}, Floats{2, 4}, parameters);
  EXPECT_EQ(parameters, (Floats{0, 0}));
  const std::span<const float> shared = rule->shared(parameters);
  EXPECT_EQ(Floats(shared.begin(), shared.end()), (Floats{1, 2}));
}

TEST(OwnStepRule, TheMeanTakesThePlaceOfTheGradientAtTheRateItWasBornWith) {
  Floats parameters{10};
  const auto rule = make_merge_rule(Merge::kOwnStep, kPlainSgd, parameters);
  rule->gradient_ready({.step = 0, .lr = 1}, Floats{4}, parameters);
  rule->gradient_ready({.step = 1, .lr = 0.5}, Floats{2}, parameters);
  EXPECT_EQ(parameters, Floats{10 - 4 - 1});
  rule->merge({.step = 1, .lr = 0.5}, {.first = 0, .count = 1}, mean_of(0, {3}), parameters);
  EXPECT_EQ(parameters, Floats{10 - 3 - 1});
  EXPECT_EQ(rule->shared(parameters)[0], 10 - 3);
  rule->merge({.step = 2, .lr = 8}, {.first = 0, .count = 1}, mean_of(1, {6}), parameters);
  EXPECT_EQ(parameters, Floats{10 - 3 - 3});
  EXPECT_EQ(rule->shared(parameters)[0], 10 - 3 - 3);
}

TEST(OwnStepRule, ReplicasWithDifferentGradientsShareTheSameBits) {
  constexpr std::size_t kElements = 100;
  const Floats initial = normal_update(kElements, 500);
  Floats mine = initial;
  Floats theirs = initial;
  const auto my_rule = make_merge_rule(Merge::kOwnStep, kPlainSgd, mine);
  const auto their_rule = make_merge_rule(Merge::kOwnStep, kPlainSgd, theirs);
  constexpr std::uint64_t kDelay = 3;
  for (std::uint64_t step = 0; step < 30; ++step) {
    const StepContext now{.step = step, .lr = 0.1};
    my_rule->gradient_ready(now, normal_update(kElements, 2 * step), mine);
    their_rule->gradient_ready(now, normal_update(kElements, 2 * step + 1), theirs);
    if (step < kDelay) continue;
    const Mean mean = mean_of(step - kDelay, normal_update(kElements, 1000 + step));
    my_rule->merge(now, {.first = 0, .count = kElements}, mean, mine);
    their_rule->merge(now, {.first = 0, .count = kElements}, mean, theirs);
    ASSERT_TRUE(same_bits(my_rule->shared(mine), their_rule->shared(theirs))) << "step " << step;
  }
  EXPECT_FALSE(same_bits(mine, theirs));
}

TEST(OwnStepRule, WithNothingInFlightParametersAreTheSharedOnes) {
  Floats parameters = normal_update(40, 1);
  const auto rule = make_merge_rule(Merge::kOwnStep, kPlainSgd, parameters);
  for (std::uint64_t step = 0; step < 10; ++step) {
    rule->gradient_ready({.step = step, .lr = 0.3}, normal_update(40, step), parameters);
    rule->merge({.step = step, .lr = 0.3}, {.first = 0, .count = 40},
                mean_of(step, normal_update(40, 100 + step)), parameters);
    EXPECT_TRUE(same_bits(parameters, rule->shared(parameters)));
  }
}

TEST(OwnStepRule, RefusesAMeanOutOfOrder) {
  Floats parameters{1};
  const auto rule = make_merge_rule(Merge::kOwnStep, kPlainSgd, parameters);
  const Part all{.first = 0, .count = 1};
  EXPECT_THROW(rule->merge({}, all, mean_of(0, {1}), parameters), std::logic_error);
  rule->gradient_ready({.step = 0, .lr = 1}, Floats{1}, parameters);
  EXPECT_THROW(rule->merge({}, all, mean_of(1, {1}), parameters), std::logic_error);
}

}  // namespace
}  // namespace longhaul
