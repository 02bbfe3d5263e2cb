// One replica's engine on an exchange in memory: what is sent, when it is merged, and what happens
// when the world goes wrong.
#include "longhaul/sync/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "longhaul/codec/payload.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using Floats = std::vector<float>;

// A round of one: the mean is what the payload decodes to. Keeps all it was given.
class MemoryExchange final : public Exchange {
 public:
  void submit(Update update) override { updates.push_back(std::move(update)); }

  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    if (failure) return *failure;
    collected.push_back(round.step);
    for (const Update& update : updates) {
      if (update.round == round)
        return Mean{.round = round, .values = std::make_shared<const Floats>(decode(update))};
    }
    return Error{ErrorCode::kNotFound, "never submitted"};
  }

  static Floats decode(const Update& update) {
    Floats values(update.elements);
    if (!update.payload.empty()) add(update.payload.view(), 1.0F, values);
    return values;
  }

  std::vector<Update> updates;
  std::vector<std::uint64_t> collected;
  std::optional<Error> failure;
};

EngineOptions plain_sgd(int delay_steps) {
  return {.recipe = {.name = "test",
                     .codec = {.kind = CodecKind::kDense, .values = ValueFormat::kFp32},
                     .plan = {.delay_steps = delay_steps}},
          .optimizer = {.kind = OptimizerKind::kSgd},
          .lr = {.peak = 1.0}};
}

class EngineOnMemory : public ::testing::Test {
 protected:
  Engine make(const EngineOptions& options) { return {options, parameters_, exchange_, workers_}; }

  static Status step(Engine& engine, Floats gradient) {
    engine.submit(gradient);
    return engine.end_step();
  }

  Workers workers_;
  MemoryExchange exchange_;
  Floats parameters_ = Floats(2, 0.0F);
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_F(EngineOnMemory, AppliesAGradientExactlyDelayStepsLater) {
  for (const int delay : {0, 1, 4}) {
    parameters_ = {0, 0};
    exchange_ = {};
    Engine engine = make(plain_sgd(delay));
    float applied = 0;
    for (int now = 0; now < 12; ++now) {
      ASSERT_TRUE(step(engine, Floats(2, std::exp2(static_cast<float>(now)))).ok());
      if (now >= delay) applied += std::exp2(static_cast<float>(now - delay));
      EXPECT_EQ(parameters_, Floats(2, -applied)) << "delay " << delay << ", step " << now;
    }
    EXPECT_EQ(engine.steps_done(), 12U);
    EXPECT_EQ(engine.rounds_in_flight(), static_cast<std::size_t>(delay));
  }
}

TEST_F(EngineOnMemory, TakesNoOptimizerStepBeforeTheFirstMean) {
  EngineOptions options = plain_sgd(3);
  options.optimizer.weight_decay = 0.5F;  // would show in the parameters
  parameters_ = {1, 2};
  Engine engine = make(options);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step(engine, {1, 1}).ok());
  EXPECT_EQ(parameters_, (Floats{1, 2}));
  ASSERT_TRUE(step(engine, {1, 1}).ok());
  EXPECT_EQ(parameters_, (Floats{-0.5F, 0}));
}

TEST_F(EngineOnMemory, MergesInTheOrderOfBirthAndDrainsTheRest) {
  Engine engine = make(plain_sgd(2));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(step(engine, {1, 0}).ok());
  EXPECT_EQ(parameters_, (Floats{-3, 0}));
  ASSERT_TRUE(engine.drain().ok());
  EXPECT_EQ(parameters_, (Floats{-5, 0}));
  EXPECT_EQ(engine.rounds_in_flight(), 0U);
  EXPECT_EQ(exchange_.collected, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  ASSERT_TRUE(engine.drain().ok()) << "nothing left to do";
  EXPECT_EQ(exchange_.collected.size(), 5U);
}

TEST_F(EngineOnMemory, SubmitsEveryStepAsARoundOfItsOwn) {
  Engine engine = make(plain_sgd(1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step(engine, {1, 1}).ok());
  ASSERT_EQ(exchange_.updates.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(exchange_.updates[i].round, RoundId{.step = i});
    EXPECT_EQ(exchange_.updates[i].elements, 2U);
  }
}

TEST_F(EngineOnMemory, MergesWithTheLearningRateOfTheStepItMergesIn) {
  EngineOptions options = plain_sgd(1);
  options.lr = {.peak = 1.0, .warmup_steps = 4};
  Engine engine = make(options);
  ASSERT_TRUE(step(engine, {1, 0}).ok());
  ASSERT_TRUE(step(engine, {0, 0}).ok());
  EXPECT_EQ(parameters_, (Floats{-0.5F, 0}));
}

// Enough elements that naming one is cheaper than sending all.
constexpr std::size_t kMany = 64;

EngineOptions largest_one_of_many() {
  EngineOptions options = plain_sgd(0);
  options.recipe.codec.kind = CodecKind::kTopK;
  options.recipe.plan.keep_ratio = 1.0 / kMany;
  return options;
}

Floats begins_with(float first, float second) {
  Floats values(kMany);
  values[0] = first;
  values[1] = second;
  return values;
}

TEST_F(EngineOnMemory, KeepsWhatTheCodecHeldBack) {
  parameters_.resize(kMany);
  Engine engine = make(largest_one_of_many());
  ASSERT_TRUE(step(engine, begins_with(3, 2)).ok());
  EXPECT_EQ(MemoryExchange::decode(exchange_.updates[0]), begins_with(3, 0));
  EXPECT_EQ(engine.residual(), begins_with(0, 2));
  ASSERT_TRUE(step(engine, begins_with(3, 2)).ok());
  EXPECT_EQ(MemoryExchange::decode(exchange_.updates[1]), begins_with(0, 4));
  EXPECT_EQ(parameters_, begins_with(-3, -4));
}

TEST_F(EngineOnMemory, ForgetsWhatTheCodecHeldBackIfTheRecipeSaysSo) {
  parameters_.resize(kMany);
  EngineOptions options = largest_one_of_many();
  options.recipe.keeps_residual = false;
  Engine engine = make(options);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step(engine, begins_with(3, 2)).ok());
  EXPECT_EQ(MemoryExchange::decode(exchange_.updates[2]), begins_with(3, 0));
  EXPECT_EQ(engine.residual()[1], 0.0F);
}

TEST_F(EngineOnMemory, ANonFiniteGradientLeavesTheResidualForLater) {
  parameters_.resize(kMany);
  Engine engine = make(largest_one_of_many());
  ASSERT_TRUE(step(engine, begins_with(3, 2)).ok());
  ASSERT_TRUE(step(engine, begins_with(kNan, 0)).ok());
  EXPECT_TRUE(exchange_.updates[1].payload.empty());
  ASSERT_TRUE(step(engine, begins_with(0, 0)).ok());
  EXPECT_EQ(MemoryExchange::decode(exchange_.updates[2]), begins_with(0, 2));
}

// The late correction with momentum: a step without a gradient is no step, so that x stays the
// shared model minus what has been told.
TEST_F(EngineOnMemory, ANonFiniteGradientIsNoLocalStep) {
  EngineOptions options = plain_sgd(1);
  options.recipe.plan.merge = Merge::kLate;
  options.optimizer = {.kind = OptimizerKind::kMomentum, .momentum = 0.5F};
  Engine engine = make(options);
  ASSERT_TRUE(step(engine, {4, 0}).ok());
  EXPECT_EQ(parameters_, (Floats{-4, 0}));
  ASSERT_TRUE(step(engine, {kNan, 0}).ok());
  EXPECT_EQ(parameters_, (Floats{-4, 0}));
  ASSERT_TRUE(step(engine, {0, 0}).ok());
  EXPECT_EQ(parameters_, (Floats{-6, 0})) << "the velocity has waited";
  ASSERT_TRUE(engine.drain().ok());
  EXPECT_EQ(Floats(engine.shared().begin(), engine.shared().end()), parameters_);
}

TEST_F(EngineOnMemory, AbsurdGradientsCountAsNotFiniteSoThatResidualsNeverOverflow) {
  parameters_.resize(kMany);
  for (const Merge merge : {Merge::kOptimizer, Merge::kLate, Merge::kAhead}) {
    EngineOptions options = largest_one_of_many();
    options.recipe.plan.merge = merge;
    Engine engine = make(options);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(step(engine, Floats(kMany, 3e38F)).ok());
    EXPECT_TRUE(engine.has_diverged());
    for (const float e : engine.residual()) EXPECT_EQ(e, 0.0F);
  }
}

TEST_F(EngineOnMemory, ANonFiniteGradientSendsNothingAndIsCounted) {
  Engine engine = make(plain_sgd(0));
  ASSERT_TRUE(step(engine, {1, 1}).ok());
  ASSERT_TRUE(step(engine, {1, kNan}).ok());
  ASSERT_TRUE(step(engine, {std::numeric_limits<float>::infinity(), 1}).ok());
  EXPECT_TRUE(exchange_.updates[1].payload.empty());
  EXPECT_TRUE(exchange_.updates[2].payload.empty());
  EXPECT_EQ(exchange_.updates[1].elements, 2U);
  EXPECT_EQ(engine.non_finite_steps(), 2U);
  EXPECT_FALSE(engine.has_diverged());
  EXPECT_EQ(parameters_, (Floats{-1, -1}));
  EXPECT_EQ(engine.residual()[0], 0.0F);
}

TEST_F(EngineOnMemory, ANonFiniteGradientDoesNotTouchTheParametersOfDga) {
  EngineOptions options = plain_sgd(2);
  options.recipe.plan.merge = Merge::kOwnStep;
  Engine engine = make(options);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(step(engine, {kNan, 1}).ok());
    EXPECT_EQ(parameters_, (Floats{0, 0})) << "step " << i;
  }
  ASSERT_TRUE(engine.drain().ok());
  EXPECT_EQ(parameters_, (Floats{0, 0}));
}

TEST_F(EngineOnMemory, TenNonFiniteGradientsInARowAreDivergence) {
  Engine engine = make(plain_sgd(1));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(step(engine, {kNan, 0}).ok());
  EXPECT_FALSE(engine.has_diverged());
  ASSERT_TRUE(step(engine, {1, 0}).ok());  // breaks the row
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(step(engine, {kNan, 0}).ok());
  EXPECT_FALSE(engine.has_diverged());
  ASSERT_TRUE(step(engine, {kNan, 0}).ok());
  EXPECT_TRUE(engine.has_diverged());
  EXPECT_EQ(engine.non_finite_steps(), 19U);
}

TEST_F(EngineOnMemory, ClipsGradientsToTheLargestNorm) {
  EngineOptions options = plain_sgd(0);
  options.clip = 1;
  Engine engine = make(options);
  ASSERT_TRUE(step(engine, {3, -4}).ok());
  EXPECT_FLOAT_EQ(parameters_[0], -0.6F);
  EXPECT_FLOAT_EQ(parameters_[1], 0.8F);
  ASSERT_TRUE(step(engine, {0.25F, 0.5F}).ok());
  EXPECT_EQ(MemoryExchange::decode(exchange_.updates[1]), (Floats{0.25F, 0.5F})) << "below: as is";
}

TEST_F(EngineOnMemory, ClipsGradientsWhoseSquaresAreBeyondAFloat) {
  EngineOptions options = plain_sgd(0);
  options.clip = 1;
  Engine engine = make(options);
  ASSERT_TRUE(step(engine, {3e30F, -4e30F}).ok());
  EXPECT_FLOAT_EQ(parameters_[0], -0.6F);
  EXPECT_FLOAT_EQ(parameters_[1], 0.8F);
}

TEST_F(EngineOnMemory, PassesOnTheErrorsOfTheExchangeAndCanTryAgain) {
  Engine engine = make(plain_sgd(1));
  ASSERT_TRUE(step(engine, {1, 1}).ok());
  exchange_.failure = Error{ErrorCode::kDeadline, "hub: silent"};
  Floats gradient{1, 1};
  engine.submit(gradient);
  const Status merged = engine.end_step();
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.error(), *exchange_.failure);
  ASSERT_FALSE(engine.drain().ok());
  EXPECT_EQ(engine.drain().error(), *exchange_.failure);
  EXPECT_EQ(engine.steps_done(), 1U);
  EXPECT_EQ(engine.rounds_in_flight(), 2U);
  EXPECT_EQ(parameters_, (Floats{0, 0}));
  exchange_.failure.reset();
  ASSERT_TRUE(engine.end_step().ok());
  ASSERT_TRUE(engine.drain().ok());
  EXPECT_EQ(parameters_, (Floats{-2, -2}));
}

TEST_F(EngineOnMemory, DgaOnARoundOfOneIsSgdWithoutDelay) {
  constexpr std::size_t kElements = 30;
  Floats prompt(kElements);
  Floats dga(kElements);
  MemoryExchange other;
  EngineOptions late = plain_sgd(4);
  late.recipe.plan.merge = Merge::kOwnStep;
  Engine prompt_engine(plain_sgd(0), prompt, exchange_, workers_);
  Engine dga_engine(late, dga, other, workers_);
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(step(prompt_engine, normal_update(kElements, i)).ok());
    ASSERT_TRUE(step(dga_engine, normal_update(kElements, i)).ok());
    EXPECT_EQ(dga, prompt) << "step " << i;
  }
  ASSERT_TRUE(dga_engine.drain().ok());
  EXPECT_TRUE(testing_data::same_bits(dga_engine.shared(), prompt_engine.shared()));
}

TEST_F(EngineOnMemory, RefusesGradientsOfAnotherSizeAndPlansItCannotFollow) {
  Engine engine = make(plain_sgd(0));
  Floats gradient{1, 2, 3};
  EXPECT_THROW(engine.submit(gradient), std::logic_error);
  EXPECT_THROW(make(plain_sgd(-1)), std::logic_error);
}

}  // namespace
}  // namespace longhaul
