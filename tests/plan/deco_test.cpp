#include "longhaul/plan/deco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "longhaul/base/workers.h"
#include "tests/plan/random_conditions.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

using ::longhaul::testing::kElements;
using ::longhaul::testing::kTopBf16;

TEST(ConvergenceFactor, HasItsClosedForm) {
  EXPECT_DOUBLE_EQ(convergence_factor(1, 0), 0);
  EXPECT_DOUBLE_EQ(convergence_factor(1, 7), 0);
  EXPECT_DOUBLE_EQ(convergence_factor(0.5, 0), 1);
  EXPECT_DOUBLE_EQ(convergence_factor(0.5, 2), 1 / (0.75 * 0.75));
  EXPECT_NEAR(convergence_factor(0.01, 4), 99 / std::pow(0.995, 4), 1e-9);
}

TEST(ConvergenceFactor, FallsInTheRatioForShortDelays) {
  for (int delay = 0; delay <= 5; ++delay) {
    EXPECT_FALSE(convergence_turn(delay));
    for (int i = 1; i < 1000; ++i) {
      EXPECT_GT(convergence_factor(i / 1000.0, delay), convergence_factor((i + 1) / 1000.0, delay))
          << "delay " << delay;
    }
  }
}

TEST(ConvergenceFactor, TurnsWhereItsDerivativeIsZeroForLongDelays) {
  for (int delay = 6; delay <= 40; ++delay) {
    const std::optional<double> turn = convergence_turn(delay);
    ASSERT_TRUE(turn) << delay;
    const double here = convergence_factor(*turn, delay);
    EXPECT_LT(here, convergence_factor(*turn * 0.97, delay)) << delay;
    EXPECT_LT(here, convergence_factor(*turn * 1.03, delay)) << delay;
  }
}

// An independent derivation: the codec's sizes at every ratio of a dense grid, every delay, and the
// step time as PAPERS states it. Gives the smallest factor of all hidden plans.
struct BruteForce {
  std::optional<double> factor;
  double keep_ratio = 0;
  int delay = 0;
};

double slowest_step(const Conditions& replicas, double up, double down, int delay) {
  double slowest = 0;
  for (const ReplicaConditions& r : replicas) {
    const double u = up / r.up.bytes_per_second;
    const double d = down / r.down.bytes_per_second;
    const double loop = r.compute.count() + 2 * r.latency.count() + u + d;
    slowest = std::max({slowest, r.compute.count(), u, d, loop / (delay + 1)});
  }
  return slowest;
}

class SizesByHand {
 public:
  explicit SizesByHand(std::size_t replicas) : replicas_(static_cast<double>(replicas)) {}
  [[nodiscard]] double up(double ratio) const { return codec_->expected_bytes(kElements, ratio); }
  [[nodiscard]] double down(double ratio) const {
    const double in_union = 1 - std::pow(1 - ratio, replicas_);
    return std::min({32 + 4.0 * kElements, union_->expected_bytes(kElements, in_union),
                     (replicas_ - 1) * up(ratio)});
  }

 private:
  double replicas_;
  Workers workers_;
  std::unique_ptr<Codec> codec_ = make_codec(kTopBf16, {}, workers_);
  std::unique_ptr<Codec> union_ = make_codec(parse_codec("top_k/fp32").value(), {}, workers_);
};

constexpr double kLeastRatio = 0.001;
constexpr int kGrid = 2000;
double ratio_at(int i) { return std::pow(10.0, -3 + 3.0 * i / kGrid); }

struct SizeGrid {
  explicit SizeGrid(std::size_t replicas) {
    const SizesByHand sizes(replicas);
    for (int i = 0; i <= kGrid; ++i) {
      up.push_back(sizes.up(ratio_at(i)));
      down.push_back(sizes.down(ratio_at(i)));
    }
  }
  std::vector<double> up;
  std::vector<double> down;
};

BruteForce brute_force(const Conditions& replicas, const SizeGrid& grid, int most_delay) {
  double compute = 0;
  for (const ReplicaConditions& r : replicas) compute = std::max(compute, r.compute.count());
  BruteForce best;
  for (int delay = 0; delay <= most_delay; ++delay) {
    for (int i = 0; i <= kGrid; ++i) {
      const auto row = static_cast<std::size_t>(i);
      if (slowest_step(replicas, grid.up[row], grid.down[row], delay) > compute * (1 + 1e-9))
        continue;
      const double ratio = ratio_at(i);
      const double factor = (1 - ratio) / (ratio * std::pow(1 - ratio / 2, delay));
      if (best.factor && factor >= *best.factor) continue;
      best = {.factor = factor, .keep_ratio = ratio, .delay = delay};
    }
  }
  return best;
}

TEST(Deco, FindsWhatBruteForceFindsOnAThousandNetworks) {
  constexpr int kDelays = 24;
  std::mt19937_64 random(17);
  const std::vector<std::size_t> counts{2, 4, 9};
  std::vector<SizeGrid> grids;
  std::vector<RoundSizes> sizes;
  for (const std::size_t n : counts) {
    grids.emplace_back(n);
    sizes.emplace_back(kTopBf16, kElements, n, RatioRange{.least = kLeastRatio});
  }
  int hidden = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const std::size_t which = random() % counts.size();
    const Conditions replicas = testing::random_conditions(random, counts[which], 4.0 * kElements);
    const Decision decision = deco(replicas, sizes[which], Merge::kOptimizer, kDelays);
    const BruteForce brute = brute_force(replicas, grids[which], kDelays);
    ASSERT_EQ(decision.is_hidden, brute.factor.has_value()) << "trial " << trial;
    if (!brute.factor) continue;
    ++hidden;
    const double factor = convergence_factor(decision.plan.keep_ratio, decision.plan.delay_steps);
    // Better than the grid by at most its spacing, worse by at most the table's interpolation.
    ASSERT_LE(factor, *brute.factor * 1.01 + 1e-9) << "trial " << trial;
    ASSERT_GE(factor, *brute.factor * 0.98 - 1e-9) << "trial " << trial;
  }
  EXPECT_GT(hidden, 300);
  EXPECT_LT(hidden, 1000);
}

Conditions equal_replicas(std::size_t n, double alpha, double beta) {
  return Conditions(n, {.compute = Seconds(0.1),
                        .latency = Seconds(0.1 * beta / 2),
                        .up = {.bytes_per_second = alpha * 4.0 * kElements / 0.1},
                        .down = {.bytes_per_second = alpha * 4.0 * kElements / 0.1}});
}

// On a dense grid of (α, β), the tabulated sizes give the ratio that bisection on the codec's own
// size function gives.
TEST(Deco, TheTableGivesWhatADirectSearchGives) {
  const RoundSizes sizes(kTopBf16, kElements, 4, {.least = kLeastRatio});
  const SizesByHand by_hand(4);
  for (double alpha = 0.01; alpha < 3; alpha *= 1.4) {
    for (double beta = 0; beta < 6; beta += 0.7) {
      const Conditions replicas = equal_replicas(4, alpha, beta);
      for (const int delay : {1, 3, 4, 7}) {
        const std::optional<double> found = largest_hidden_ratio(Paces(replicas), sizes, delay);
        double low = kLeastRatio;
        double high = 1;
        const auto hides = [&](double ratio) {
          return slowest_step(replicas, by_hand.up(ratio), by_hand.down(ratio), delay) <=
                 0.1 * (1 + 1e-9);
        };
        ASSERT_EQ(found.has_value(), hides(low)) << alpha << ' ' << beta << ' ' << delay;
        if (!found || hides(high)) continue;
        for (int i = 0; i < 40; ++i) (hides((low + high) / 2) ? low : high) = (low + high) / 2;
        ASSERT_NEAR(*found / low, 1, 0.005) << alpha << ' ' << beta << ' ' << delay;
      }
    }
  }
}

TEST(Deco, OnThePapersExampleKeepsAFewPercentAndMergesFourStepsLate) {
  const Decision decision = deco(equal_replicas(4, 0.1, 2), RoundSizes(kTopBf16, kElements, 4));
  EXPECT_EQ(decision.plan.delay_steps, 4);
  // The others' payloads, forwarded, fill the way down: 3 U = α · dense.
  EXPECT_NEAR(3 * SizesByHand(4).up(decision.plan.keep_ratio) / (0.1 * 4 * kElements), 1, 0.01);
  EXPECT_NEAR(decision.plan.keep_ratio, 0.0488, 0.001);
  EXPECT_TRUE(decision.is_hidden);
  EXPECT_NEAR(decision.step_time.count(), 0.1, 1e-6);
  EXPECT_THAT(decision.reason, HasSubstr("4 steps late"));
}

TEST(Deco, OnAFastNearNetworkSendsEverythingAtOnce) {
  const Decision decision = deco(equal_replicas(4, 100, 0.001), RoundSizes(kTopBf16, kElements, 4));
  EXPECT_EQ(decision.plan.keep_ratio, 1);
  EXPECT_LE(decision.plan.delay_steps, 1);
}

TEST(Deco, WhereNothingHidesTakesTheLeastTime) {
  const Decision decision = deco(equal_replicas(4, 0.0001, 2), RoundSizes(kTopBf16, kElements, 4));
  EXPECT_FALSE(decision.is_hidden);
  EXPECT_GT(decision.step_time.count(), 0.1);
  EXPECT_THAT(decision.reason, HasSubstr("nothing hides"));
}

TEST(RoundSizes, AscendAndMatchTheCodec) {
  const RoundSizes sizes(kTopBf16, kElements, 4);
  for (std::size_t i = 1; i < sizes.table().size(); ++i) {
    EXPECT_GT(sizes.table()[i].keep_ratio, sizes.table()[i - 1].keep_ratio);
    EXPECT_GE(sizes.table()[i].up, sizes.table()[i - 1].up);
    EXPECT_GE(sizes.table()[i].down, sizes.table()[i - 1].down);
  }
  EXPECT_DOUBLE_EQ(sizes.table().back().keep_ratio, 1);
  for (const double ratio : {0.0013, 0.01, 0.0314, 0.25, 0.99}) {
    EXPECT_NEAR(sizes.at(ratio).up / sizes.exact(ratio).up, 1, 0.005) << ratio;
    EXPECT_NEAR(sizes.at(ratio).down / sizes.exact(ratio).down, 1, 0.005) << ratio;
  }
}

TEST(RoundSizes, OfACodecThatSendsEverythingDoNotDependOnTheRatio) {
  const RoundSizes sizes(parse_codec("dense/bf16").value(), kElements, 4);
  EXPECT_EQ(sizes.exact(0.01).up, sizes.exact(1).up);
  EXPECT_EQ(sizes.exact(0.01).down, sizes.exact(1).down);
  EXPECT_EQ(sizes.exact(0.01).way, WayDown::kDense);
}

TEST(RoundSizes, OfLowRankAreThoseOfItsFactors) {
  const LayerTable layers{{.count = kElements, .shape = {100, kElements / 100}}};
  const RoundSizes sizes(parse_codec("shared_low_rank").value(), kElements, 4, {}, WayDown::kTwoWay,
                         layers);
  const double factors = 4.0 * (100.0 + kElements / 100) * sizeof(float);  // of rank 4
  EXPECT_LT(sizes.exact(1).up, 1.1 * factors);
  EXPECT_EQ(sizes.exact(1).down, sizes.exact(1).up);
}

TEST(RoundSizes, ForwardsWhereThatIsTheCheapestWayDown) {
  const RoundSizes few(parse_codec("top_k/2bit").value(), kElements, 4);
  EXPECT_EQ(few.exact(1.0 / 64).way, WayDown::kForwarded);
  const RoundSizes many(kTopBf16, kElements, 1000);
  EXPECT_EQ(many.exact(0.5).way, WayDown::kDense);
  EXPECT_EQ(many.exact(0.001).way, WayDown::kUnion);
}

TEST(RoundSizes, TheTableGoesFromTheLeastToTheMostInSmallSteps) {
  const RatioRange limits;
  const RoundSizes sizes(kTopBf16, kElements, 4, limits);
  EXPECT_EQ(sizes.table().front().keep_ratio, limits.least);
  EXPECT_EQ(sizes.table().back().keep_ratio, limits.most);
  for (std::size_t row = 1; row < sizes.table().size(); ++row) {
    const double step = sizes.table()[row].keep_ratio / sizes.table()[row - 1].keep_ratio;
    ASSERT_GT(step, 1.0) << row;
    ASSERT_LT(step, 1.007) << row;
  }
  EXPECT_EQ(RoundSizes(kTopBf16, kElements, 4, {.least = 0.1, .most = 0.1}).table().size(), 1U);
}

}  // namespace
}  // namespace longhaul
