// DreamDDP overlaps without extra memory: the vectors of the model that it holds, beside those of
// synchronous SGD and of local SGD.
#include <gtest/gtest.h>

#include "tests/sync/held_vectors.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kElements = 1U << 20U;
constexpr double kSmall = 0.02;  // all that does not grow with the model

// Momentum is the one vector beside parameters and gradient.
TEST(HeldVectors, WithMeansInPlaceAreThoseOfSynchronousSgd) {
  for (const char* recipe : {"wfbp", "local-sgd", "dreamddp"}) {
    const HeldVectors held = held_by(recipe, true, kElements);
    EXPECT_NEAR(held.between_steps, 1, kSmall) << recipe;
    EXPECT_NEAR(held.at_most, 1, kSmall) << recipe;
  }
}

TEST(HeldVectors, OverAHubAreAtMostOneMoreAndNoMoreThanThoseOfLocalSgd) {
  const HeldVectors wfbp = held_by("wfbp", false, kElements);
  const HeldVectors local = held_by("local-sgd", false, kElements);
  const HeldVectors dreamddp = held_by("dreamddp", false, kElements);
  EXPECT_LE(dreamddp.between_steps, wfbp.between_steps + 1 + kSmall);
  EXPECT_LE(dreamddp.at_most, wfbp.at_most + 1 + kSmall);
  EXPECT_LE(dreamddp.between_steps, local.between_steps + kSmall);
  EXPECT_LE(dreamddp.at_most, local.at_most);
  EXPECT_GT(dreamddp.between_steps, 1.5);  // momentum and the shared model
}

}  // namespace
}  // namespace longhaul::testing
