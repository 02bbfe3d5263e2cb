#include "longhaul/plan/auto_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plan/random_conditions.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

using ::longhaul::testing::equal_links;
using ::longhaul::testing::kElements;
using ::longhaul::testing::kTopBf16;
using ::longhaul::testing::sizes_of_four;
constexpr std::size_t kReplicas = 4;

// Independent: every ratio, every delay and period, each term as it is written down.
double brute_force_cost(const Conditions& replicas, std::span<const RoundSize> choices, Merge merge,
                        int period) {
  double best = 1e300;
  for (const RoundSize& size : choices) {
    for (int delay = 0; delay <= kMostAutoDelay; ++delay) {
      const int loops = period * ((delay + period) / period);  // steps from merge to merge
      double sum = 0;
      for (const double rate : {1.0, 1.0 / 3}) {
        double time = 0;
        for (const ReplicaConditions& r : replicas) {
          const double up = size.up / (rate * r.up.bytes_per_second);
          const double down = size.down / (rate * r.down.bytes_per_second);
          const double loop =
              (loops - delay) * r.compute.count() + 2 * r.latency.count() + up + down;
          time = std::max({time, r.compute.count(), up / period, down / period, loop / loops});
        }
        sum += time;
      }
      const Plan plan{.keep_ratio = size.keep_ratio, .delay_steps = delay, .period_steps = period};
      best = std::min(best, sum / 2 * calibrated_model(merge).steps(plan));
    }
  }
  return best;
}

TEST(AutoPlanner, FindsWhatBruteForceFindsOnAThousandNetworks) {
  const RoundSizes sizes = sizes_of_four();
  const AutoPlanner planner(sizes, {});
  std::vector<RoundSize> choices;
  for (const double ratio : round_ratios({})) choices.push_back(sizes.at(ratio));
  std::mt19937_64 random(23);
  int with_periods = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    // Every second link is so slow that only longer periods fit it.
    const double bytes = 4.0 * kElements * (trial % 2 == 0 ? 1 : 0.003);
    const Conditions replicas = testing::random_conditions(random, kReplicas, bytes);
    const Decision decision = planner.best(replicas);
    const double cost = decision.time().count();
    double brute = brute_force_cost(replicas, choices, decision.plan.merge, 1);
    for (int period = 2; period <= kMostAutoPeriod; period *= 2)
      brute = std::min(
          brute, kWorthAPeriod * brute_force_cost(replicas, choices, decision.plan.merge, period));
    const double weight = decision.plan.period_steps == 1 ? 1 : kWorthAPeriod;
    ASSERT_NEAR(weight * cost, brute, brute * 1e-9) << "trial " << trial;
    ASSERT_NEAR(step_time(replicas, sizes.at(decision.plan.keep_ratio), decision.plan.delay_steps,
                          decision.plan.period_steps)
                    .count(),
                decision.step_time.count(), 1e-12);
    if (decision.plan.period_steps > 1) ++with_periods;
  }
  EXPECT_GT(with_periods, 100);
}

TEST(AutoPlanner, ChoosesFromRoundRatios) {
  const std::vector<double> all = round_ratios({});
  EXPECT_EQ(all.front(), 0.0003);
  EXPECT_EQ(all[1], 0.000315);
  EXPECT_EQ(all.back(), 1.0);
  EXPECT_EQ(all.size(), 37U);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_GT(all[i], all[i - 1]);
    EXPECT_LT(all[i], 1.3 * all[i - 1]);
  }
  for (const double ratio : {0.001, 0.0125, 0.315, 0.8}) EXPECT_THAT(all, Contains(ratio));
  EXPECT_EQ(round_ratios({.least = 0.02, .most = 0.02}), std::vector<double>{0.02});
  EXPECT_EQ(round_ratios({.least = 0.011, .most = 0.02}),
            (std::vector<double>{0.011, 0.0125, 0.016, 0.02}));
}

// They come from real sockets in a rehearsal, and from a model in the lab.
TEST(AutoPlanner, ChoosesTheSamePlanForLinksThatAreMeasuredALittleOff) {
  const AutoPlanner planner(sizes_of_four(), {});
  std::mt19937_64 random(29);
  int same = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Conditions replicas = testing::random_conditions(random, kReplicas, 4.0 * kElements);
    const Plan plan = planner.best(replicas).plan;
    for (ReplicaConditions& replica : replicas) {
      replica.up.bytes_per_second *= 0.97;
      replica.down.bytes_per_second *= 0.97;
    }
    if (planner.best(replicas).plan == plan) ++same;
  }
  EXPECT_GT(same, 800);
}

TEST(AutoPlanner, HasARoundInEveryStepWhereALinkAllowsIt) {
  EXPECT_EQ(AutoPlanner(sizes_of_four(), {}).best(equal_links(0.1, 2)).plan.period_steps, 1);
}

// Below the least ratio only longer periods send less.
TEST(AutoPlanner, TakesStepsOfItsOwnWhereALinkIsVerySlow) {
  const Decision decision = AutoPlanner(sizes_of_four(), {}).best(equal_links(0.0002, 2));
  EXPECT_GT(decision.plan.period_steps, 1);
  EXPECT_THAT(decision.reason, HasSubstr("of every"));
  EXPECT_EQ(
      AutoPlanner(sizes_of_four(), {.steps = 12}).best(equal_links(0.0002, 2)).plan.period_steps, 1)
      << "a run of few steps";
}

TEST(AutoPlanner, LeavesRoomForALinkThatFalls) {
  const Decision decision = AutoPlanner(sizes_of_four(), {}).best(equal_links(0.1, 2));
  const Conditions fallen = equal_links(0.1 / 2.5, 2);
  const Seconds then =
      step_time(fallen, sizes_of_four().at(decision.plan.keep_ratio), decision.plan.delay_steps);
  EXPECT_LT(then.count(), 1.05 * decision.step_time.count());
}

TEST(AutoPlanner, SendsMoreInAShortRun) {
  const Conditions links = equal_links(0.1, 2);
  const auto ratio = [&](std::size_t steps) {
    return AutoPlanner(sizes_of_four(), {.steps = steps}).best(links).plan.keep_ratio;
  };
  EXPECT_GT(ratio(20), 1.2 * ratio(300));
  EXPECT_EQ(ratio(300), ratio(0));
  EXPECT_EQ(ratio(100'000), ratio(0));
}

// The mean of many is larger than that of a few.
TEST(Planner, CountsThoseWhoAreThere) {
  const Conditions links = equal_links(0.01, 2);
  for (const PlannerKind kind : {PlannerKind::kAuto, PlannerKind::kDeco, PlannerKind::kFrozen}) {
    const auto of_four =
        make_planner({.kind = kind, .plan = {.merge = Merge::kLate}}, sizes_of_four());
    const auto of_two = make_planner({.kind = kind, .plan = {.merge = Merge::kLate}},
                                     RoundSizes(kTopBf16, kElements, 2));
    const Plan by_four = of_four->first(links).plan;
    const Plan by_two = of_two->first(links).plan;
    ASSERT_LT(by_four.keep_ratio, by_two.keep_ratio);
    of_four->expect(2);
    EXPECT_EQ(of_four->first(links).plan, by_two);
    of_four->expect(4);
    EXPECT_EQ(of_four->first(links).plan, by_four);
  }
}

TEST(AutoPlanner, NamesItsRatioInFull) {
  EXPECT_THAT(AutoPlanner(sizes_of_four(), {}).best(equal_links(0.12, 2)).reason,
              HasSubstr("keep 1.25 % and merge"));
}

TEST(AutoPlanner, KeepsEveryoneComputingOnASlowLink) {
  const Decision decision = AutoPlanner(sizes_of_four(), {}).best(equal_links(0.1, 2));
  EXPECT_GT(0.1 / decision.step_time.count(), 0.9);
  EXPECT_THAT(decision.reason, HasSubstr("the least predicted time to the target"));
  EXPECT_THAT(decision.reason, HasSubstr("may fall to 33 % of their rate"));
  EXPECT_THAT(decision.reason, HasSubstr("keep 1 % and merge 3 steps late"));
  EXPECT_THAT(decision.reason, HasSubstr("11 % more steps are needed"));
}

RoundFacts facts(double alpha, double agreement, const Plan& current) {
  return {.replicas = equal_links(alpha, 2), .agreement = agreement, .current = current};
}

// While it learns how far the links fall, it may change its mind; afterwards not any more, though
// the best plan of the moment is another one in every second round.
TEST(AutoPlanner, StaysPutWhileTheLinkOnlyJitters) {
  AutoPlanner planner(sizes_of_four(), {});
  Plan plan = planner.first(equal_links(0.1, 2)).plan;
  std::mt19937_64 random(3);
  int early = 0;
  int late = 0;
  int tempted = 0;
  for (int round = 0; round < 1000; ++round) {
    const double alpha = 0.1 * testing::uniform_in(random, 0.9, 1.1);
    if (round >= 300 && planner.best(equal_links(alpha, 2)).plan != plan) ++tempted;
    const std::optional<Decision> decision = planner.round_closed(facts(alpha, 0.5, plan));
    if (!decision) continue;
    ++(round < 300 ? early : late);
    plan = decision->plan;
  }
  EXPECT_LE(early, 3);
  EXPECT_EQ(late, 0);
  EXPECT_GT(tempted, 100);
}

// Up and down by two thirds every three seconds, which is worth a change, and not one at once.
TEST(AutoPlanner, ChangesNoMoreOftenThanAPersonCanRead) {
  AutoPlanner planner(sizes_of_four(), {});
  Plan plan = planner.first(equal_links(0.02, 2)).plan;
  int changes = 0;
  for (int round = 0; round < 600; ++round) {  // a minute
    const double alpha = round / 30 % 2 == 0 ? 0.02 : 0.02 / 3;
    const std::optional<Decision> decision = planner.round_closed(facts(alpha, 0.5, plan));
    if (!decision) continue;
    ++changes;
    plan = decision->plan;
  }
  EXPECT_EQ(changes, static_cast<int>(kMostChangesAMinute));
}

TEST(AutoPlanner, FollowsALinkThatBreaksDownAtOnce) {
  AutoPlanner planner(sizes_of_four(), {});
  const Plan plan = planner.first(equal_links(0.1, 2)).plan;
  const std::optional<Decision> decision = planner.round_closed(facts(0.02, 0.5, plan));
  ASSERT_TRUE(decision);
  EXPECT_LT(decision->plan.keep_ratio, plan.keep_ratio);
}

TEST(AutoPlanner, LooksAheadWhereReplicasDisagree) {
  AutoPlanner planner(sizes_of_four(), {});
  Plan plan = planner.first(equal_links(0.1, 2)).plan;
  EXPECT_EQ(plan.merge, Merge::kLate);
  for (int round = 0; round < 60; ++round) {
    if (const auto decision = planner.round_closed(facts(0.1, -0.2, plan))) plan = decision->plan;
  }
  EXPECT_EQ(plan.merge, Merge::kAhead);
  for (int round = 0; round < 100; ++round) {
    if (const auto decision = planner.round_closed(facts(0.1, 0.6, plan))) plan = decision->plan;
  }
  EXPECT_EQ(plan.merge, Merge::kLate);
}

// As after a hub's restart.
TEST(AutoPlanner, GoesOnWithTheRuleOfTheRun) {
  AutoPlanner planner(sizes_of_four(), {});
  Plan plan = AutoPlanner(sizes_of_four(), {}).first(equal_links(0.1, 2)).plan;
  plan.merge = Merge::kAhead;
  for (int round = 0; round < 60; ++round) {
    if (const auto decision = planner.round_closed(facts(0.1, -0.2, plan))) plan = decision->plan;
    ASSERT_EQ(plan.merge, Merge::kAhead) << round;
  }
}

TEST(AutoPlanner, DoesNotLookAheadWhereOnlyPeriodsFit) {
  constexpr double kSlow = 2e-5;
  AutoPlanner planner(sizes_of_four(), {});
  Plan plan = planner.first(equal_links(kSlow, 2)).plan;
  ASSERT_GE(plan.period_steps, 8);
  for (int round = 0; round < 60; ++round) {
    if (const auto decision = planner.round_closed(facts(kSlow, -0.2, plan))) plan = decision->plan;
  }
  EXPECT_EQ(plan.merge, Merge::kLate);
  // It still follows the links.
  for (int round = 0; round < 60; ++round) {
    if (const auto decision = planner.round_closed(facts(0.1, -0.2, plan))) plan = decision->plan;
  }
  EXPECT_EQ(plan.merge, Merge::kAhead);
}

// What it has come to after 200 rounds on these links.
Plan plan_after(double alpha, double beta, double agreement) {
  AutoPlanner planner(sizes_of_four(), {});
  Plan plan = planner.first(equal_links(alpha, beta)).plan;
  for (int round = 0; round < 200; ++round) {
    const RoundFacts now{
        .replicas = equal_links(alpha, beta), .agreement = agreement, .current = plan};
    if (const auto decision = planner.round_closed(now)) plan = decision->plan;
  }
  return plan;
}

TEST(AutoPlanner, DelaysLessWhereReplicasAgreeLess) {
  int delays_less = 0;
  for (const double alpha : {0.003, 0.01, 0.03, 0.1}) {
    for (const double beta : {0.1, 0.5, 1.0, 2.0, 4.0}) {
      const Plan agreed = plan_after(alpha, beta, 0.5);
      const Plan disagreed = plan_after(alpha, beta, -0.02);
      EXPECT_EQ(disagreed.merge, Merge::kLate);
      EXPECT_LE(disagreed.delay_steps, agreed.delay_steps) << alpha << ' ' << beta;
      if (disagreed.delay_steps < agreed.delay_steps) ++delays_less;
    }
  }
  EXPECT_GE(delays_less, 5) << "of 20 links";
  EXPECT_NEAR(calibrated_model(Merge::kLate).corrected(-0.02).delay_cost(4),
              4 * calibrated_model(Merge::kLate).delay_cost(4), 1e-9);
  EXPECT_EQ(calibrated_model(Merge::kLate).corrected(0.5).delay_cost(4),
            calibrated_model(Merge::kLate).delay_cost(4));
}

TEST(AutoPlanner, IgnoresTheAgreementOfARunThatDiverges) {
  AutoPlanner planner(sizes_of_four(), {});
  const Plan plan = planner.first(equal_links(0.1, 2)).plan;
  for (int round = 0; round < 30; ++round)
    EXPECT_FALSE(planner.round_closed(facts(0.1, std::nan(""), plan)));
}

TEST(AutoPlanner, NeverLooksAheadWithAnOptimizerItCannotForesee) {
  AutoPlanner planner(sizes_of_four(), {.may_look_ahead = false});
  Plan plan = planner.first(equal_links(0.1, 2)).plan;
  for (int round = 0; round < 60; ++round) {
    if (const auto decision = planner.round_closed(facts(0.1, -0.2, plan))) plan = decision->plan;
  }
  EXPECT_EQ(plan.merge, Merge::kLate);
}

TEST(Agreement, IsOneForOneDirectionAndZeroForIndependentMessages) {
  using Numbers = std::vector<double>;
  EXPECT_NEAR(agreement_of(Numbers(4, 1), Numbers(4, 2), 2), 1, 1e-12);
  EXPECT_NEAR(agreement_of(Numbers(4, 1), Numbers(4, 2), 0.5), 0, 1e-12);
  EXPECT_NEAR(agreement_of(Numbers{9, 1}, Numbers{1, 1}, 0.81 + 0.01), 0, 1e-12);
  EXPECT_NEAR(agreement_of(Numbers{9, 1}, Numbers{1, 1}, 1), 1, 1e-12);
  EXPECT_LT(agreement_of(Numbers(2, 1), Numbers(2, 1), 0), 0);
  EXPECT_EQ(agreement_of(Numbers(1, 1), Numbers(1, 3), 3), 1);
  EXPECT_EQ(agreement_of(Numbers(2, 1), Numbers(2, 0), 0), 1);
}

TEST(Planner, EveryKindKeepsWhatItPromises) {
  const Conditions links = equal_links(0.1, 2);
  const Plan plan{.keep_ratio = 0.07, .delay_steps = 3, .merge = Merge::kLate};
  const auto make = [&](PlannerKind kind) {
    return make_planner({.kind = kind, .plan = plan}, sizes_of_four());
  };
  EXPECT_EQ(make(PlannerKind::kNone)->first(links).plan, plan);
  const Decision deco_late = make(PlannerKind::kDeco)->first(links);
  EXPECT_EQ(deco_late.plan.merge, Merge::kLate);
  EXPECT_EQ(deco_late.plan.keep_ratio, deco(links, sizes_of_four(), Merge::kLate).plan.keep_ratio);
  const auto frozen = make(PlannerKind::kFrozen);
  const Plan first = frozen->first(links).plan;
  EXPECT_EQ(first, AutoPlanner(sizes_of_four(), {}).best(links).plan);
  EXPECT_FALSE(frozen->round_closed(facts(0.001, 0.5, first)));
  const auto random = make(PlannerKind::kRandom);
  const Decision drawn = random->first(links);
  EXPECT_EQ(drawn.plan.keep_ratio, first.keep_ratio);
  EXPECT_EQ(drawn.step_time,
            step_time(links, sizes_of_four().exact(first.keep_ratio), drawn.plan.delay_steps));
}

TEST(Planner, AccordionSendsMuchWhileTheNormChangesFast) {
  const auto accordion = make_planner({.kind = PlannerKind::kAccordion}, sizes_of_four());
  Plan plan = accordion->first(equal_links(1, 1)).plan;
  EXPECT_EQ(plan.keep_ratio, 0.99);
  const auto run = [&](double norm) {
    for (int round = 0; round < 20; ++round) {
      RoundFacts now = facts(1, 1, plan);
      now.mean_norm = norm;
      if (const auto decision = accordion->round_closed(now)) plan = decision->plan;
    }
  };
  run(1);
  EXPECT_EQ(plan.keep_ratio, 0.99);
  run(0.9);
  EXPECT_EQ(plan.keep_ratio, 0.1);
  run(0.3);
  EXPECT_EQ(plan.keep_ratio, 0.99);
}

}  // namespace
}  // namespace longhaul
