#include "trainer/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace longhaul::trainer {
namespace {

// y = second · (first · x), and optionally `first` again at the end.
struct TwoLayers {
  torch::Tensor first = torch::tensor({1.F, 2.F, 3.F, 4.F}).view({2, 2}).requires_grad_(true);
  torch::Tensor second = torch::tensor({5.F, 6.F}).view({1, 2}).requires_grad_(true);

  [[nodiscard]] torch::Tensor forward(const torch::Tensor& x) const {
    return torch::linear(torch::linear(x, first), second);
  }
};

TEST(Arena, LaysOutLayersInBackwardOrderWithoutGaps) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  ASSERT_EQ(arena.layers().size(), 2U);
  EXPECT_EQ(arena.layers()[0].name, "second");
  EXPECT_EQ(arena.layers()[0].offset, 0U);
  EXPECT_EQ(arena.layers()[0].count, 2U);
  EXPECT_EQ(arena.layers()[0].shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(arena.layers()[1].offset, 2U);
  EXPECT_EQ(arena.layers()[1].shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_TRUE(std::ranges::equal(arena.parameters(), std::vector<float>{5, 6, 1, 2, 3, 4}));
  EXPECT_EQ(arena.gradient().size(), 6U);
}

TEST(Arena, BackwardWritesIntoTheFlatGradient) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  const torch::Tensor x = torch::tensor({1.F, 10.F}).view({1, 2});
  for (int repetition = 0; repetition < 3; ++repetition) {
    arena.clear_gradient();
    model.forward(x).sum().backward();
    // d/dsecond = first · x, d/dfirst = second ⊗ x
    EXPECT_TRUE(std::ranges::equal(arena.gradient(), std::vector<float>{21, 43, 5, 50, 6, 60}));
    EXPECT_NO_THROW(arena.check_views());
  }
}

TEST(Arena, BackwardAccumulatesUntilCleared) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  const torch::Tensor x = torch::tensor({1.F, 10.F}).view({1, 2});
  model.forward(x).sum().backward();
  model.forward(x).sum().backward();
  EXPECT_EQ(arena.gradient()[0], 42);
  arena.clear_gradient();
  EXPECT_EQ(model.second.grad().abs().sum().item<float>(), 0);
}

TEST(Arena, WritingParametersChangesTheForwardPass) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  const torch::Tensor x = torch::tensor({1.F, 10.F}).view({1, 2});
  EXPECT_EQ(model.forward(x).item<float>(), 5 * 21 + 6 * 43);
  arena.parameters()[0] = 0;
  EXPECT_EQ(model.forward(x).item<float>(), 6 * 43);
}

TEST(Arena, TiedParametersAreLaidOutOnceWhereTheirGradientIsReady) {
  const TwoLayers model;
  Arena arena({{"embedding", model.first}, {"middle", model.second}, {"out", model.first}});
  ASSERT_EQ(arena.layers().size(), 2U);
  EXPECT_EQ(arena.layers()[0].name, "middle");
  EXPECT_EQ(arena.layers()[1].name, "embedding");
  EXPECT_EQ(arena.parameters().size(), 6U);
  torch::linear(torch::linear(torch::ones({1, 2}), model.first), model.first).sum().backward();
  // Both uses add up: d/dW of 1ᵀ W W 1.
  EXPECT_TRUE(std::ranges::equal(arena.gradient().subspan(2), std::vector<float>{7, 11, 9, 13}));
}

TEST(Arena, TellsOfALayerWhenTheLayersBeforeItAreComputed) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  std::vector<std::string> events;
  torch::Tensor y;
  const auto forward = [&] {
    const torch::Tensor x = torch::linear(torch::tensor({1.F, 10.F}).view({1, 2}), model.first);
    events.push_back("first computed");
    y = torch::linear(x, model.second);
  };
  arena.tell_before_use(forward, [&](std::size_t first, std::size_t count) {
    events.push_back((first == 0 ? "second of " : "first of ") + std::to_string(count));
    if (first == 0) arena.parameters()[0] = 0;
  });
  EXPECT_EQ(events, (std::vector<std::string>{"first of 4", "first computed", "second of 2"}));
  EXPECT_EQ(y.item<float>(), 6 * 43) << "what was written is read";
  y.sum().backward();
  EXPECT_TRUE(std::ranges::equal(arena.gradient(), std::vector<float>{21, 43, 0, 0, 6, 60}));
}

std::vector<std::size_t> told_in(Arena& arena, const std::function<void()>& forward) {
  std::vector<std::size_t> told;
  arena.tell_before_use(forward, [&](std::size_t first, std::size_t) { told.push_back(first); });
  return told;
}

TEST(Arena, TellsOfALayerInEveryFormInWhichAnOperationGetsIt) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  const torch::Tensor row = model.first[1];
  using testing::ElementsAre;
  EXPECT_THAT(told_in(arena, [&] { (void)row.sum(); }), ElementsAre(2)) << "an older view";
  EXPECT_THAT(told_in(arena,
                      [&] {
                        (void)torch::cat({model.second, model.first});
                      }),
              ElementsAre(0, 2));
  EXPECT_THAT(told_in(arena,
                      [&] {
                        (void)torch::ones({1, 2}).mul_(model.second);
                      }),
              ElementsAre(0));
  EXPECT_THAT(told_in(arena, [&] { (void)torch::ones({1, 2}).sum(); }), ElementsAre());
  EXPECT_THAT(told_in(arena, [&] { (void)model.first.grad().sum(); }), ElementsAre());
}

TEST(Arena, WatchesOnlyItsOwnThreadWhileItsForwardPassRuns) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  const auto on_another_thread = [&] { std::jthread([&] { (void)model.first.sum(); }).join(); };
  EXPECT_TRUE(told_in(arena, on_another_thread).empty());
  std::size_t calls = 0;
  arena.tell_before_use([] {}, [&](std::size_t, std::size_t) { ++calls; });
  (void)model.first.sum();
  EXPECT_EQ(calls, 0U);
}

TEST(Arena, AnExceptionOfTheOneWhoIsToldLeavesTheForwardPass) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  std::size_t calls = 0;
  const auto forward = [&] { (void)model.forward(torch::ones({1, 2})); };
  const auto throwing = [&](std::size_t, std::size_t) {
    ++calls;
    throw std::runtime_error("no mean");
  };
  EXPECT_THROW(arena.tell_before_use(forward, throwing), std::runtime_error);
  EXPECT_EQ(calls, 1U);
  EXPECT_EQ(told_in(arena, forward).size(), 2U) << "the next pass is watched again";
}

TEST(Arena, NoticesAGradientThatWasReplaced) {
  const TwoLayers model;
  Arena arena({{"first", model.first}, {"second", model.second}});
  torch::Tensor first = model.first;
  first.mutable_grad() = torch::Tensor();  // what zero_grad() of newer versions does
  model.forward(torch::ones({1, 2})).sum().backward();
  EXPECT_THROW(arena.check_views(), std::logic_error);
}

}  // namespace
}  // namespace longhaul::trainer
