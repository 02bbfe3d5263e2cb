// What each rule does with a replica's own gradient and with the mean that comes later.
#include "longhaul/sync/merge_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "longhaul/base/workers.h"
#include "longhaul/codec/codec.h"
#include "tests/codec/test_data.h"
#include "tests/sync/cluster.h"

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
  rule->update_of({.step = 0, .lr = 0.5}, Floats{9, 9, 9}, parameters);
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

// A rule and the parameters it moves, stepped through by hand; nothing is held back.
struct Stepper {
  Stepper(Merge merge, const OptimizerSpec& optimizer, Floats initial)
      : parameters(std::move(initial)), rule(make_merge_rule(merge, optimizer, parameters)) {}

  void gradient(std::uint64_t step, double lr, const Floats& values) {
    Floats update(parameters.size());
    std::ranges::copy(rule->update_of({.step = step, .lr = lr}, values, parameters),
                      update.begin());
    rule->sent({.step = step, .lr = lr}, {.step = step}, codec->take({.residual = update}));
    place(step + 1, lr);
  }
  void mean(std::uint64_t step, double lr, std::uint64_t born, Floats values) {
    rule->merge({.step = step, .lr = lr}, {.first = 0, .count = parameters.size()},
                mean_of(born, std::move(values)), parameters);
    place(step + 1, lr);
  }
  void place(std::uint64_t next, double lr) {
    rule->place({.step = next, .lr = lr}, Floats(parameters.size()), parameters);
  }
  [[nodiscard]] Floats shared() const {
    const std::span<const float> values = rule->shared(parameters);
    return {values.begin(), values.end()};
  }

  Workers workers;
  std::unique_ptr<Codec> codec = make_codec(parse_codec("dense/fp32").value(), {}, workers);
  Floats parameters;
  std::unique_ptr<MergeRule> rule;
};

TEST(OwnStepRule, StepsWithItsOwnGradientAndSharesOnlyMeans) {
  Stepper replica(Merge::kOwnStep, kPlainSgd, {1, 2});
  replica.gradient(0, 0.5, {2, 4});
  EXPECT_EQ(replica.parameters, (Floats{0, 0}));
  EXPECT_EQ(replica.shared(), (Floats{1, 2}));
}

TEST(OwnStepRule, TheMeanTakesThePlaceOfTheGradientAtTheRateItWasBornWith) {
  Stepper replica(Merge::kOwnStep, kPlainSgd, {10});
  replica.gradient(0, 1, {4});
  replica.gradient(1, 0.5, {2});
  EXPECT_EQ(replica.parameters, Floats{10 - 4 - 1});
  replica.mean(1, 0.5, 0, {3});
  EXPECT_EQ(replica.parameters, Floats{10 - 3 - 1});
  EXPECT_EQ(replica.shared(), Floats{10 - 3});
  replica.mean(2, 8, 1, {6});
  EXPECT_EQ(replica.parameters, Floats{10 - 3 - 3});
  EXPECT_EQ(replica.shared(), Floats{10 - 3 - 3});
}

TEST(LateRule, TheMeanTakesThePlaceOfTheReplicasOwnStep) {
  Stepper replica(Merge::kLate, {.kind = OptimizerKind::kMomentum, .momentum = 0.5F}, {10});
  replica.gradient(0, 1, {4});  // velocity 4
  EXPECT_EQ(replica.parameters, Floats{6});
  replica.gradient(1, 1, {2});  // velocity 4
  EXPECT_EQ(replica.parameters, Floats{2});
  EXPECT_EQ(replica.shared(), Floats{10});
  replica.mean(1, 1, 0, {3});
  EXPECT_EQ(replica.parameters, Floats{10 - 3 - 4});
  EXPECT_EQ(replica.shared(), Floats{7});
}

TEST(LateRule, StandsWhereTheResidualLeavesIt) {
  Stepper replica(Merge::kLate, kPlainSgd, {10, 10});
  replica.rule->place({.step = 0, .lr = 1}, Floats{1, 2}, replica.parameters);
  EXPECT_EQ(replica.parameters, (Floats{9, 8}));
}

TEST(AheadRule, StandsWhereItsOwnMessagesWillLead) {
  Stepper replica(Merge::kAhead, {.kind = OptimizerKind::kMomentum, .momentum = 0.5F}, {100});
  replica.gradient(0, 1, {8});
  EXPECT_EQ(replica.parameters, Floats{100 - 8});  // v = 8
  replica.gradient(1, 1, {2});
  EXPECT_EQ(replica.parameters, Floats{100 - 8 - 6});  // v = 8, then 6
  EXPECT_EQ(replica.shared(), Floats{100});
  replica.mean(1, 1, 0, {16});
  EXPECT_EQ(replica.shared(), Floats{84});              // v = 16
  EXPECT_EQ(replica.parameters, Floats{84 - (8 + 2)});  // and then 0.5 · 16 + 2
}

class SharedApartRules : public ::testing::TestWithParam<Merge> {};

TEST_P(SharedApartRules, ReplicasWithDifferentGradientsShareTheSameBits) {
  constexpr std::size_t kElements = 100;
  const Floats initial = normal_update(kElements, 500);
  Stepper mine(GetParam(), {}, initial);
  Stepper theirs(GetParam(), {}, initial);
  constexpr std::uint64_t kDelay = 3;
  for (std::uint64_t step = 0; step < 30; ++step) {
    mine.gradient(step, 0.1, normal_update(kElements, 2 * step));
    theirs.gradient(step, 0.1, normal_update(kElements, 2 * step + 1));
    if (step < kDelay) continue;
    const Floats mean = normal_update(kElements, 1000 + step);
    mine.mean(step, 0.1, step - kDelay, mean);
    theirs.mean(step, 0.1, step - kDelay, mean);
    ASSERT_TRUE(same_bits(mine.shared(), theirs.shared())) << "step " << step;
  }
  EXPECT_FALSE(same_bits(mine.parameters, theirs.parameters));
}

TEST_P(SharedApartRules, WithNothingInFlightParametersAreTheSharedOnes) {
  Stepper replica(GetParam(), {}, normal_update(40, 1));
  for (std::uint64_t step = 0; step < 10; ++step) {
    replica.gradient(step, 0.3, normal_update(40, step));
    replica.mean(step, 0.3, step, normal_update(40, 100 + step));
    EXPECT_TRUE(same_bits(replica.parameters, replica.shared()));
  }
}

TEST_P(SharedApartRules, RefuseAMeanOutOfOrder) {
  Stepper replica(GetParam(), {}, {1});
  EXPECT_THROW(replica.mean(0, 1, 0, {1}), std::logic_error);
  replica.gradient(0, 1, {1});
  EXPECT_THROW(replica.mean(0, 1, 1, {1}), std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(Rules, SharedApartRules,
                         ::testing::Values(Merge::kOwnStep, Merge::kLate, Merge::kAhead),
                         [](const auto& test) { return testing::test_name_of(test.param); });

}  // namespace
}  // namespace longhaul
