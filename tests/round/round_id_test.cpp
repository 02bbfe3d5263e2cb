#include "longhaul/round/round_id.h"

#include <gtest/gtest.h>

#include <limits>

namespace longhaul {
namespace {

TEST(RoundId, ClosesByStepAndThenByPart) {
  EXPECT_LT((RoundId{.step = 3, .part = 9}), (RoundId{.step = 4, .part = 0}));
  EXPECT_LT((RoundId{.step = 4, .part = 0}), (RoundId{.step = 4, .part = 1}));
}

TEST(RoundId, NothingLiesBetweenARoundAndTheNameBehindIt) {
  constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(after({.step = 4, .part = 1}), (RoundId{.step = 4, .part = 2}));
  EXPECT_EQ(after({.step = 4, .part = kLast}), (RoundId{.step = 5, .part = 0}));
}

}  // namespace
}  // namespace longhaul
