#include "longhaul/link/rate_estimator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace longhaul {
namespace {

constexpr double kBytes = 1e5;

TransferSample at_rate(double bytes_per_second) {
  return {.bytes = kBytes, .duration = Seconds(kBytes / bytes_per_second)};
}

double typical(const RateEstimator& estimator) { return estimator.typical()->bytes_per_second; }

// A log-normal factor around 1.
double jitter(std::mt19937_64& random, double deviation) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
  return std::exp(deviation * (sum - 6));
}

TEST(RateEstimator, KnowsNothingBeforeTheFirstSample) {
  const RateEstimator estimator;
  EXPECT_FALSE(estimator.typical());
  EXPECT_FALSE(estimator.low());
}

TEST(RateEstimator, TakesTheFirstSampleAsItIs) {
  RateEstimator estimator;
  estimator.add(at_rate(1e6));
  EXPECT_NEAR(typical(estimator), 1e6, 1);
}

TEST(RateEstimator, IgnoresSamplesThatCannotBe) {
  RateEstimator estimator;
  estimator.add({.bytes = 0, .duration = Seconds(1)});
  estimator.add({.bytes = 10, .duration = Seconds(0)});
  estimator.add({.bytes = 10, .duration = Seconds(-1)});
  EXPECT_FALSE(estimator.typical());
}

TEST(RateEstimator, FollowsAChangeWithinFiveRounds) {
  for (const double factor : {0.1, 0.5, 0.7, 1.4, 2.0, 10.0}) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      std::mt19937_64 random(seed);
      RateEstimator estimator;
      for (int i = 0; i < 30; ++i) estimator.add(at_rate(1e6 * jitter(random, 0.05)));
      for (int i = 0; i < 5; ++i) estimator.add(at_rate(factor * 1e6 * jitter(random, 0.05)));
      EXPECT_NEAR(typical(estimator) / (factor * 1e6), 1, 0.25) << factor << " seed " << seed;
    }
  }
}

TEST(RateEstimator, DoesNotFlapOnJitter) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    RateEstimator estimator;
    for (int i = 0; i < 5; ++i) estimator.add(at_rate(1e6 * jitter(random, 0.06)));
    for (int i = 0; i < 400; ++i) {
      estimator.add(at_rate(1e6 * jitter(random, 0.06)));
      EXPECT_NEAR(typical(estimator) / 1e6, 1, 0.25);
    }
  }
}

TEST(RateEstimator, OneBadSampleMovesItLittle) {
  RateEstimator estimator;
  for (int i = 0; i < 10; ++i) estimator.add(at_rate(1e6));
  estimator.add(at_rate(2e5));
  EXPECT_GT(typical(estimator), 0.6e6);
  estimator.add(at_rate(1e6));
  estimator.add(at_rate(1e6));
  EXPECT_NEAR(typical(estimator) / 1e6, 1, 0.05);
}

TEST(RateEstimator, AppLimitedSamplesDoNotLowerIt) {
  RateEstimator estimator;
  for (int i = 0; i < 10; ++i) estimator.add(at_rate(1e6));
  for (int i = 0; i < 10; ++i) {
    TransferSample sample = at_rate(1e5);
    sample.is_app_limited = true;
    estimator.add(sample);
  }
  EXPECT_NEAR(typical(estimator), 1e6, 1);
  for (int i = 0; i < 3; ++i) {
    TransferSample sample = at_rate(2e6);
    sample.is_app_limited = true;
    estimator.add(sample);
  }
  EXPECT_NEAR(typical(estimator) / 2e6, 1, 0.01) << "but they may raise it";
}

TransferSample lasting(double seconds, double bytes_per_second) {
  return {.bytes = seconds * bytes_per_second, .duration = Seconds(seconds)};
}

TEST(RateEstimator, ShortTransfersDoNotLowerIt) {
  RateEstimator estimator(Seconds(0.02));
  EXPECT_TRUE(estimator.add(lasting(0.1, 1e6)));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(estimator.add(lasting(0.005, 1e5)));
  EXPECT_NEAR(typical(estimator), 1e6, 1);
  // One that is long enough tells at once, whatever short ones were before it.
  (void)estimator.add(lasting(0.019, 5e6));
  EXPECT_TRUE(estimator.add(lasting(0.5, 1e5)));
  EXPECT_TRUE(estimator.add(lasting(0.5, 1e5)));
  EXPECT_NEAR(typical(estimator), 1e5, 1);
}

// What a transfer of 7 ms looks like where a machine was busy for 70 ms: from one that a link of a
// tenth of the rate has carried it cannot be told apart, and a longer one can.
TEST(RateEstimator, ShortTransfersThatComeLateRaiseDoubtAndNothingElse) {
  RateEstimator estimator(Seconds(0.02));
  (void)estimator.add(lasting(0.1, 1e6));
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(estimator.add({.bytes = 7e3, .duration = Seconds(0.07)}));
    EXPECT_TRUE(estimator.is_doubted());
  }
  EXPECT_NEAR(typical(estimator), 1e6, 1);
  EXPECT_NEAR(estimator.low()->bytes_per_second, 1e6, 1);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(estimator.add({.bytes = 2e4, .duration = Seconds(0.2)}));
  EXPECT_NEAR(typical(estimator), 1e5, 1);
}

TEST(RateEstimator, TransfersThatTakeVeryLongTellHoweverFewBytesTheyHave) {
  RateEstimator estimator(Seconds(0.02));
  (void)estimator.add(lasting(0.1, 1e9));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(estimator.add({.bytes = 1e5, .duration = Seconds(1)}));
  EXPECT_NEAR(typical(estimator), 1e5, 1);
}

// Of more than a probe may have, the fastest links carry in 20 ms.
TEST(RateEstimator, ProbesTellHoweverFewBytesTheyHave) {
  RateEstimator estimator(Seconds(0.02));
  (void)estimator.add(lasting(0.1, 1e9));
  const TransferSample probe{.bytes = 4e6, .duration = Seconds(0.08), .is_probe = true};
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(estimator.add(probe));
  EXPECT_NEAR(typical(estimator), 5e7, 1);
}

// A transfer of 8 ms that is seen up to 4 ms early or late.
TransferSample short_transfer(std::mt19937_64& random, double bytes = 8e3) {
  const double jitter_s = 0.004 * (static_cast<double>(random() % 2001) / 1000 - 1);
  return {.bytes = bytes, .duration = Seconds(0.008 + jitter_s)};
}

// Bytes come together where the receiver was busy, and apart where it was not: none of it shows.
TEST(RateEstimator, ShortTransfersRaiseItWhereTheyShowAMuchFasterLink) {
  std::mt19937_64 random(5);
  RateEstimator estimator(Seconds(0.02));
  (void)estimator.add(lasting(0.1, 1e5));
  for (int i = 0; i < 20; ++i) (void)estimator.add(short_transfer(random));
  EXPECT_NEAR(typical(estimator) / 1e6, 1, 0.3);
}

// What raises and never lowers climbs to the highest that noise shows.
TEST(RateEstimator, ShortTransfersDoNotRaiseItByTheirNoise) {
  std::mt19937_64 random(5);
  RateEstimator estimator(Seconds(0.02));
  (void)estimator.add(lasting(0.1, 1e6));
  for (int i = 0; i < 1000; ++i) {
    (void)estimator.add(short_transfer(random));
    ASSERT_NEAR(typical(estimator), 1e6, 1) << i;
  }
}

// The rest of 2.4 kB comes in the slice of a link, or the packet, after that of the first kilobyte,
// which had room for a part of it: 1.4 kB in the time of 1.05 kB. Of fewer, all comes at once.
TEST(RateEstimator, TransfersOfAFewPacketsTellNothing) {
  RateEstimator estimator(Seconds(0.02));
  (void)estimator.add(lasting(0.1, 675e3));
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(estimator.add({.bytes = 1400, .duration = Seconds(1050 / 675e3)}));
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(estimator.add({.bytes = 900, .duration = Seconds(1e-4)}));
  EXPECT_NEAR(typical(estimator), 675e3, 1);
}

// A probe is as long as the level says: one that is short shows a faster link by itself.
TEST(RateEstimator, AShortProbeTells) {
  RateEstimator estimator(Seconds(0.02));
  (void)estimator.add(lasting(0.1, 1e6));
  TransferSample probe = lasting(0.005, 1e7);
  probe.is_probe = true;
  for (int i = 0; i < 2; ++i) (void)estimator.add(probe);
  EXPECT_NEAR(typical(estimator), 1e7, 10);
}

TEST(RateEstimator, AShortTransferIsBetterThanNone) {
  RateEstimator estimator(Seconds(0.02));
  EXPECT_FALSE(estimator.add(lasting(0.001, 1e6)));
  EXPECT_NEAR(typical(estimator), 1e6, 1);
}

TEST(RateEstimator, TheLowRateLiesBelowBySpread) {
  std::mt19937_64 random(3);
  RateEstimator calm;
  RateEstimator rough;
  for (int i = 0; i < 100; ++i) {
    calm.add(at_rate(1e6));
    rough.add(at_rate(1e6 * jitter(random, 0.3)));
  }
  EXPECT_NEAR(calm.low()->bytes_per_second, 1e6, 1);
  EXPECT_LT(rough.low()->bytes_per_second, 0.9 * typical(rough));
}

}  // namespace
}  // namespace longhaul
