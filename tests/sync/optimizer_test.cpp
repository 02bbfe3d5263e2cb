// Every optimizer against its textbook form in double, and stepped in parts against stepped whole.
#include "longhaul/sync/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/base/state.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/sync/step_kernels.h"
#include "tests/codec/simd_targets.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;

constexpr std::size_t kElements = 50;
constexpr int kSteps = 20;

// PyTorch's SGD (momentum without dampening) and AdamW, one element at a time.
class Reference {
 public:
  explicit Reference(const OptimizerOptions& spec) : spec_(spec) {}

  void step(double& x, double g, double lr) {
    if (spec_.kind == OptimizerKind::kAdamW) return adamw(x, g, lr);
    g += spec_.weight_decay * x;
    first_ = spec_.momentum * first_ + g;
    if (spec_.kind == OptimizerKind::kMomentum) g = first_;
    if (spec_.kind == OptimizerKind::kNesterov) g += spec_.momentum * first_;
    x -= lr * g;
  }

 private:
  void adamw(double& x, double g, double lr) {
    const double b1 = spec_.momentum;
    const double b2 = spec_.second_moment;
    ++steps_;
    x -= lr * spec_.weight_decay * x;
    first_ = b1 * first_ + (1 - b1) * g;
    second_ = b2 * second_ + (1 - b2) * g * g;
    const double corrected = first_ / (1 - std::pow(b1, steps_));
    x -= lr * corrected / (std::sqrt(second_ / (1 - std::pow(b2, steps_))) + spec_.epsilon);
  }

  OptimizerOptions spec_;
  double first_ = 0;
  double second_ = 0;
  int steps_ = 0;
};

double lr_of(int step) { return 0.1 / (1 + step); }

class OptimizerConformance : public ::testing::TestWithParam<OptimizerOptions> {};

TEST_P(OptimizerConformance, FollowsItsTextbookForm) {
  std::vector<float> parameters = normal_update(kElements, 1000);
  std::vector<double> expected(parameters.begin(), parameters.end());
  std::vector<Reference> references(kElements, Reference(GetParam()));
  Optimizer optimizer(GetParam(), kElements);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = normal_update(kElements, static_cast<std::uint64_t>(step));
    optimizer.step(0, parameters, gradient, lr_of(step));
    for (std::size_t i = 0; i < kElements; ++i)
      references[i].step(expected[i], gradient[i], lr_of(step));
  }
  for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(parameters[i], expected[i], 2e-6);
}

TEST_P(OptimizerConformance, SteppedInPartsEqualsSteppedWhole) {
  std::vector<float> whole = normal_update(kElements, 1000);
  std::vector<float> parts = whole;
  Optimizer whole_optimizer(GetParam(), kElements);
  Optimizer parts_optimizer(GetParam(), kElements);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = normal_update(kElements, static_cast<std::uint64_t>(step));
    whole_optimizer.step(0, whole, gradient, lr_of(step));
    for (const auto& [first, count] : {std::pair{30, 20}, std::pair{0, 7}, std::pair{7, 23}}) {
      const auto at = static_cast<std::size_t>(first);
      const auto length = static_cast<std::size_t>(count);
      parts_optimizer.step(at, std::span(parts).subspan(at, length),
                           std::span(gradient).subspan(at, length), lr_of(step));
    }
  }
  EXPECT_TRUE(same_bits(whole, parts));
  EXPECT_TRUE(same_bits(whole_optimizer.state(), parts_optimizer.state()));
}

TEST_P(OptimizerConformance, PartsThatChangeInTheMidstGoOnFromWhereTheyWere) {
  std::vector<float> whole = normal_update(kElements, 1000);
  std::vector<float> parts = whole;
  Optimizer whole_optimizer(GetParam(), kElements);
  Optimizer parts_optimizer(GetParam(), kElements);
  std::vector<std::size_t> firsts{0};
  for (int step = 0; step < kSteps; ++step) {
    if (step > 0) {
      firsts = step % 3 == 1   ? std::vector<std::size_t>{0, 20}
               : step % 3 == 2 ? std::vector<std::size_t>{0, 7, 30}
                               : std::vector<std::size_t>{0};
      parts_optimizer.regroup(firsts);
    }
    const std::vector<float> gradient = normal_update(kElements, static_cast<std::uint64_t>(step));
    whole_optimizer.step(0, whole, gradient, lr_of(step));
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      const std::size_t end = i + 1 < firsts.size() ? firsts[i + 1] : kElements;
      const std::size_t count = end - firsts[i];
      ASSERT_TRUE(parts_optimizer.accept(firsts[i], 1, lr_of(step)));
      parts_optimizer.step(firsts[i], std::span(parts).subspan(firsts[i], count),
                           std::span(gradient).subspan(firsts[i], count), lr_of(step));
    }
  }
  EXPECT_TRUE(same_bits(whole, parts));
}

TEST_P(OptimizerConformance, PartsMayBeSteppedAtDifferentTimes) {
  constexpr std::size_t kHalf = kElements / 2;
  std::vector<float> together = normal_update(kElements, 1000);
  std::vector<float> apart = together;
  Optimizer all(GetParam(), kElements);
  Optimizer one_after_the_other(GetParam(), kElements);
  const auto gradient_of = [](int step) {
    return normal_update(kElements, static_cast<std::uint64_t>(step));
  };
  for (int step = 0; step < kSteps; ++step) all.step(0, together, gradient_of(step), lr_of(step));
  for (const std::size_t first : {std::size_t{0}, kHalf}) {
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> gradient = gradient_of(step);
      one_after_the_other.step(first, std::span(apart).subspan(first, kHalf),
                               std::span(gradient).subspan(first, kHalf), lr_of(step));
    }
  }
  EXPECT_TRUE(same_bits(together, apart));
}

TEST_P(OptimizerConformance, GoesOnFromItsState) {
  std::vector<float> straight = normal_update(kElements, 1000);
  std::vector<float> resumed = straight;
  Optimizer optimizer(GetParam(), kElements);
  Optimizer before(GetParam(), kElements);
  Optimizer after(GetParam(), kElements);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = normal_update(kElements, static_cast<std::uint64_t>(step));
    optimizer.step(0, straight, gradient, 0.1);
    if (step == kSteps / 2) {
      State saved;
      before.save(saved);
      ASSERT_TRUE(after.load(saved).ok());
    }
    (step < kSteps / 2 ? before : after).step(0, resumed, gradient, 0.1);
  }
  EXPECT_TRUE(same_bits(straight, resumed));
}

TEST_P(OptimizerConformance, EveryTargetAndEveryPieceGivesTheSameBits) {
  std::vector<float> expected;
  for_each_simd_target([&](const std::string& target) {
    for (const std::size_t piece : {kElements, std::size_t{17}, std::size_t{1}}) {
      std::vector<float> parameters = normal_update(kElements, 1000);
      Optimizer optimizer(GetParam(), kElements);
      for (int number = 0; number < kSteps; ++number) {
        const std::vector<float> gradient =
            normal_update(kElements, static_cast<std::uint64_t>(number));
        const kernels::OptimizerStep step = optimizer.begin(0, lr_of(number), 0.75F);
        for (std::size_t first = 0; first < kElements; first += piece) {
          const std::size_t count = std::min(piece, kElements - first);
          std::vector<float> seen(parameters.begin() + static_cast<std::ptrdiff_t>(first),
                                  parameters.begin() + static_cast<std::ptrdiff_t>(first + count));
          optimizer.preview(step, first, seen, std::span(gradient).subspan(first, count));
          const std::span here = std::span(parameters).subspan(first, count);
          optimizer.step(step, first, here, std::span(gradient).subspan(first, count));
          ASSERT_TRUE(same_bits(seen, here)) << "the preview differs";
        }
      }
      if (expected.empty()) expected = parameters;
      EXPECT_TRUE(same_bits(parameters, expected)) << target << ", pieces of " << piece;
    }
  });
}

TEST_P(OptimizerConformance, RefusesGradientsThatCouldMoveByAnAbsurdAmount) {
  Optimizer optimizer(GetParam(), kElements);
  EXPECT_TRUE(optimizer.accept(0, 1.0F, 0.1));
  EXPECT_FALSE(optimizer.accept(0, 1e30F, 4));
  EXPECT_FALSE(optimizer.accept(0, std::numeric_limits<float>::infinity(), 0.1));
  EXPECT_FALSE(optimizer.accept(0, std::numeric_limits<float>::quiet_NaN(), 0.1));
  EXPECT_TRUE(optimizer.accept(0, 1.0F, 0.1)) << "a refused gradient leaves nothing behind";
  EXPECT_TRUE(optimizer.accept(0, 1e20F, 0.1));
  EXPECT_EQ(optimizer.accept(0, 1.0F, 2e10), GetParam().kind == OptimizerKind::kSgd);
  EXPECT_TRUE(optimizer.accept(5, 1.0F, 2e10)) << "of another part, which has not moved";
}

TEST(StepKernels, TheLargestMagnitudeIsInfiniteIfAnythingIsNotFinite) {
  for_each_simd_target([](const std::string& target) {
    for (std::size_t size = 1; size < 70; ++size) {
      for (std::size_t at = 0; at < size; at += 7) {
        std::vector<float> values(size, -0.5F);
        values[at] = -3;
        EXPECT_EQ(kernels::largest_magnitude(values), 3.0F) << target;
        values[at] = std::numeric_limits<float>::quiet_NaN();
        EXPECT_TRUE(std::isinf(kernels::largest_magnitude(values))) << target;
      }
    }
  });
}

TEST_P(OptimizerConformance, RefusesPartsOutsideTheModel) {
  Optimizer optimizer(GetParam(), 4);
  std::vector<float> parameters(3);
  const std::vector<float> gradient(3);
  EXPECT_THROW(optimizer.step(2, parameters, gradient, 0.1), std::logic_error);
  EXPECT_THROW(optimizer.step(0, parameters, std::span(gradient).first(2), 0.1), std::logic_error);
  EXPECT_NO_THROW(optimizer.step(4, {}, {}, 0.1));
}

std::string name_of_case(const ::testing::TestParamInfo<OptimizerOptions>& info) {
  constexpr std::string_view kNames[] = {"Sgd", "Momentum", "Nesterov", "AdamW"};
  return std::string(kNames[static_cast<std::size_t>(info.param.kind)]) +
         (info.param.weight_decay > 0 ? "WithDecay" : "");
}

constexpr OptimizerOptions kSpecs[] = {
    {.kind = OptimizerKind::kSgd},      {.kind = OptimizerKind::kSgd, .weight_decay = 0.1F},
    {.kind = OptimizerKind::kMomentum}, {.kind = OptimizerKind::kMomentum, .weight_decay = 0.1F},
    {.kind = OptimizerKind::kNesterov}, {.kind = OptimizerKind::kNesterov, .weight_decay = 0.1F},
    {.kind = OptimizerKind::kAdamW},    {.kind = OptimizerKind::kAdamW, .weight_decay = 0.1F},
};
INSTANTIATE_TEST_SUITE_P(Kinds, OptimizerConformance, ::testing::ValuesIn(kSpecs), name_of_case);

// Its square is no finite number: the element stays behind, but what is saved can be loaded.
TEST(Optimizer, AHugeGradientLeavesNothingThatIsNotFinite) {
  for (const OptimizerOptions& spec : kSpecs) {
    Optimizer optimizer(spec, 1);
    float parameter = 1;
    for (const float gradient : {1e30F, 1.0F, -1e30F, 0.0F})
      optimizer.step(0, {&parameter, 1}, {&gradient, 1}, 1e-3);
    EXPECT_TRUE(std::isfinite(parameter));
    for (const float value : optimizer.state()) EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace longhaul
