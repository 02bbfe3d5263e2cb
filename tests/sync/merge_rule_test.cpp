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
#include "tests/codec/checked.h"
#include "tests/codec/test_data.h"
#include "tests/sync/cluster.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;
using Floats = std::vector<float>;

constexpr OptimizerOptions kPlainSgd{.kind = OptimizerKind::kSgd};

Mean mean_of(std::uint64_t step, Floats values) {
  return {.round = {.step = step}, .values = std::make_shared<const Floats>(std::move(values))};
}

// A rule and the parameters it moves, stepped through by hand with a codec that holds nothing back.
struct Stepper {
  Stepper(Merge rule_kind, const OptimizerOptions& optimizer_spec, Floats initial,
          const LrSchedule& schedule = {.peak = 1}, float kept = 1.0F)
      : merge(rule_kind),
        lr(schedule),
        parameters(std::move(initial)),
        optimizer(optimizer_spec, parameters.size()),
        rule(make_merge_rule({.recipe = {.residual_decay = kept, .plan = {.merge = rule_kind}},
                              .optimizer = optimizer_spec,
                              .lr = schedule},
                             parameters, parameters, optimizer, workers)) {}

  void gradient(std::uint64_t step, const Floats& values) {
    TakeOptions request{.increment = values};
    kernels::OptimizerStep own;
    if (has_local_steps(merge)) {
      own = optimizer.begin(0, lr.at(step));
      request.move = [&](std::size_t first, std::size_t count) {
        optimizer.step(own, first, std::span(parameters).subspan(first, count),
                       std::span(values).subspan(first, count));
      };
    }
    const ByteBuffer payload =
        rule->take({.first = 0, .count = parameters.size()}, *codec, request);
    rule->sent({.step = step}, testing_data::checked(payload, parameters.size()));
    rule->place(step + 1);
  }
  void mean(std::uint64_t step, std::uint64_t born, Floats values) {
    mean({.first = 0, .count = parameters.size()}, step, born, std::move(values));
  }
  void mean(const Part& part, std::uint64_t step, std::uint64_t born, Floats values) {
    rule->merge(step, part, mean_of(born, std::move(values)));
    rule->place(step + 1);
  }
  [[nodiscard]] Floats shared() const {
    const std::span<const float> values = rule->shared();
    return {values.begin(), values.end()};
  }

  Merge merge;
  LrSchedule lr;
  Workers workers;
  std::unique_ptr<Codec> codec = make_codec(parse_codec("dense/fp32").value(), {}, workers);
  Floats parameters;
  Optimizer optimizer;
  std::unique_ptr<MergeRule> rule;
};

TEST(OptimizerRule, OnlyTheMeanMovesParameters) {
  Stepper replica(Merge::kOptimizer, kPlainSgd, {1, 2, 3}, {.peak = 0.5});
  replica.gradient(0, {9, 9, 9});
  EXPECT_EQ(replica.parameters, (Floats{1, 2, 3}));
  replica.mean(4, 0, {2, 4, 6});
  EXPECT_EQ(replica.parameters, (Floats{0, 0, 0}));
  EXPECT_EQ(replica.rule->shared().data(), replica.parameters.data());
}

TEST(OptimizerRule, MovesOnlyThePartThatTheMeanCovers) {
  Stepper replica(Merge::kOptimizer, {}, {1, 2, 3, 4});
  replica.mean({.first = 1, .count = 2}, 0, 0, {1, 1});
  EXPECT_EQ(replica.parameters, (Floats{1, 1, 2, 4}));
}

TEST(OptimizerRule, RefusesAMeanOfAnotherSize) {
  Stepper replica(Merge::kOptimizer, {}, {1, 2, 3});
  EXPECT_THROW(replica.mean(0, 0, {1, 1}), std::logic_error);
}

TEST(OwnStepRule, StepsWithItsOwnGradientAndSharesOnlyMeans) {
  Stepper replica(Merge::kOwnStep, kPlainSgd, {1, 2}, {.peak = 0.5});
  replica.gradient(0, {2, 4});
  EXPECT_EQ(replica.parameters, (Floats{0, 0}));
  EXPECT_EQ(replica.shared(), (Floats{1, 2}));
}

TEST(OwnStepRule, TheMeanTakesThePlaceOfTheGradientAtTheRateItWasBornWith) {
  // 0.5 in the first step, 1 in the second, 1.5 in the third.
  Stepper replica(Merge::kOwnStep, kPlainSgd, {10}, {.peak = 2, .warmup_steps = 4});
  replica.gradient(0, {8});
  replica.gradient(1, {1});
  EXPECT_EQ(replica.parameters, Floats{10 - 4 - 1});
  replica.mean(1, 0, {6});
  EXPECT_EQ(replica.parameters, Floats{10 - 3 - 1});
  EXPECT_EQ(replica.shared(), Floats{10 - 3});
  replica.mean(2, 1, {3});
  EXPECT_EQ(replica.parameters, Floats{10 - 3 - 3});
  EXPECT_EQ(replica.shared(), Floats{10 - 3 - 3});
}

TEST(LateRule, TheMeanTakesThePlaceOfTheReplicasOwnStep) {
  Stepper replica(Merge::kLate, {.kind = OptimizerKind::kMomentum, .momentum = 0.5F}, {10});
  replica.gradient(0, {4});  // velocity 4
  EXPECT_EQ(replica.parameters, Floats{6});
  replica.gradient(1, {2});  // velocity 4
  EXPECT_EQ(replica.parameters, Floats{2});
  EXPECT_EQ(replica.shared(), Floats{10});
  replica.mean(1, 0, {3});
  EXPECT_EQ(replica.parameters, Floats{10 - 3 - 4});
  EXPECT_EQ(replica.shared(), Floats{7});
}

TEST(LateRule, MovesBackByWhatTheResidualLoses) {
  Stepper replica(Merge::kLate, kPlainSgd, Floats(100, 10), {}, 0.25F);
  replica.parameters[3] = 8;
  replica.parameters[5] = 6;
  const auto codec = make_codec(parse_codec("top_k/fp32").value(), {}, replica.workers);
  const ByteBuffer payload =
      replica.rule->take({.first = 0, .count = 100}, *codec, {.keep_ratio = 0.01});
  EXPECT_FALSE(payload.empty());
  replica.rule->sent({}, CheckedPayload::of_sealed(payload, 100));
  Floats held_back(100);
  held_back[3] = 0.5F;
  EXPECT_EQ(replica.rule->residual(), held_back);
  EXPECT_EQ(replica.parameters[3], 9.5F);
  EXPECT_EQ(replica.parameters[5], 6.0F);
}

TEST(AheadRule, StandsWhereItsOwnMessagesWillLead) {
  Stepper replica(Merge::kAhead, {.kind = OptimizerKind::kMomentum, .momentum = 0.5F}, {100});
  replica.gradient(0, {8});
  EXPECT_EQ(replica.parameters, Floats{100 - 8});  // v = 8
  replica.gradient(1, {2});
  EXPECT_EQ(replica.parameters, Floats{100 - 8 - 6});  // v = 8, then 6
  EXPECT_EQ(replica.shared(), Floats{100});
  replica.mean(1, 0, {16});
  EXPECT_EQ(replica.shared(), Floats{84});              // v = 16
  EXPECT_EQ(replica.parameters, Floats{84 - (8 + 2)});  // and then 0.5 · 16 + 2
}

class SharedApartRules : public ::testing::TestWithParam<Merge> {};

TEST_P(SharedApartRules, ReplicasWithDifferentGradientsShareTheSameBits) {
  constexpr std::size_t kElements = 100;
  const Floats initial = normal_update(kElements, 500);
  Stepper mine(GetParam(), {}, initial, {.peak = 0.1});
  Stepper theirs(GetParam(), {}, initial, {.peak = 0.1});
  constexpr std::uint64_t kDelay = 3;
  for (std::uint64_t step = 0; step < 30; ++step) {
    mine.gradient(step, normal_update(kElements, 2 * step));
    theirs.gradient(step, normal_update(kElements, 2 * step + 1));
    if (step < kDelay) continue;
    const Floats mean = normal_update(kElements, 1000 + step);
    mine.mean(step, step - kDelay, mean);
    theirs.mean(step, step - kDelay, mean);
    ASSERT_TRUE(same_bits(mine.shared(), theirs.shared())) << "step " << step;
  }
  EXPECT_FALSE(same_bits(mine.parameters, theirs.parameters));
}

TEST_P(SharedApartRules, WithNothingInFlightParametersAreTheSharedOnes) {
  Stepper replica(GetParam(), {}, normal_update(40, 1), {.peak = 0.3});
  for (std::uint64_t step = 0; step < 10; ++step) {
    replica.gradient(step, normal_update(40, step));
    replica.mean(step, step, normal_update(40, 100 + step));
    EXPECT_TRUE(same_bits(replica.parameters, replica.shared()));
  }
}

TEST_P(SharedApartRules, RefuseAMeanOutOfOrder) {
  Stepper replica(GetParam(), {}, {1});
  EXPECT_THROW(replica.mean(0, 0, {1}), std::logic_error);
  replica.gradient(0, {1});
  EXPECT_THROW(replica.mean(0, 1, {1}), std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(Rules, SharedApartRules,
                         ::testing::Values(Merge::kOwnStep, Merge::kLate, Merge::kAhead),
                         [](const auto& test) { return testing::test_name_of(test.param); });

}  // namespace
}  // namespace longhaul
