#include "longhaul/hub/evaluations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/hub/peer_fixture.h"

namespace longhaul {
namespace {

v1::Evaluation score_at(std::uint64_t step, double accuracy, bool is_closing = false) {
  v1::Evaluation evaluation;
  evaluation.set_step(step);
  evaluation.set_accuracy(accuracy);
  evaluation.set_samples(10);
  evaluation.set_is_closing(is_closing);
  return evaluation;
}

TEST(Evaluations, TheMemberOfTheLowestSlotScores) {
  Roster roster({.id = 1}, {}, 2, {});
  Peer& first = testing::add_peer(roster, "a", 1);
  Peer& second = testing::add_peer(roster, "b", 2);
  Evaluations evaluations(true, {});
  roster.enroll(second);
  evaluations.name_evaluator(roster);
  EXPECT_TRUE(roster.of(second).was_evaluator);
  EXPECT_FALSE(roster.of(first).was_evaluator);
  roster.enroll(first);
  evaluations.name_evaluator(roster);
  EXPECT_TRUE(roster.of(first).was_evaluator);
}

TEST(Evaluations, TakesOnlyNewerOnes) {
  Evaluations evaluations(true, {});
  EXPECT_TRUE(evaluations.take(score_at(20, 0.5), Seconds(1)));
  EXPECT_FALSE(evaluations.take(score_at(20, 0.6), Seconds(1)));
  EXPECT_FALSE(evaluations.take(score_at(10, 0.6), Seconds(1)));
  EXPECT_TRUE(evaluations.take(score_at(20, 0.6, true), Seconds(1)));
  EXPECT_TRUE(evaluations.last()->is_closing());
}

TEST(Evaluations, TheMeanOfTheLastThreeReachesTheTarget) {
  Evaluations evaluations(true, {.metric = Metric::kAccuracy, .value = 0.7});
  EXPECT_FALSE(evaluations.smoothed());
  for (std::uint64_t step = 1; step <= 3; ++step)
    evaluations.take(score_at(step, step == 3 ? 0.9 : 0.5), Seconds(1));
  EXPECT_FALSE(evaluations.has_reached_target());
  evaluations.take(score_at(4, 0.9), Seconds(1));
  EXPECT_TRUE(evaluations.has_reached_target());
}

TEST(Evaluations, RefusesWhatCannotBe) {
  EXPECT_TRUE(Evaluations::is_possible(score_at(5, 0.5), 5, false));
  EXPECT_FALSE(Evaluations::is_possible(score_at(6, 0.5), 5, false));
  EXPECT_FALSE(Evaluations::is_possible(score_at(5, 1.5), 5, false));
  EXPECT_FALSE(Evaluations::is_possible(score_at(5, 0.5, true), 5, false));
  EXPECT_TRUE(Evaluations::is_possible(score_at(5, 0.5, true), 5, true));
  v1::Evaluation endless = score_at(5, 0.5);
  endless.set_loss(INFINITY);
  EXPECT_FALSE(Evaluations::is_possible(endless, 5, false));
}

}  // namespace
}  // namespace longhaul
