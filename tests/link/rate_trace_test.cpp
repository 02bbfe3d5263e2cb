// Transfers over changing rates against integration in tiny steps; traces from text and from seeds.
#include "longhaul/link/rate_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr Bandwidth per_second(double bytes) { return {.bytes_per_second = bytes}; }

// A power of two, so that whole numbers of it are exact and no tiny step spans two rates.
constexpr double kTiny = 1.0 / 64;

double draw(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution(low, high)(random);
}

// Up to 6 steps of up to 32 tiny steps, every third of them without any rate.
RateTrace random_trace(std::mt19937_64& random) {
  std::vector<RateStep> steps{
      {.duration = Seconds(kTiny * static_cast<double>(1 + random() % 32)), .rate = per_second(7)}};
  const std::size_t count = random() % 6;
  for (std::size_t i = 0; i < count; ++i) {
    steps.push_back({.duration = Seconds(kTiny * static_cast<double>(1 + random() % 32)),
                     .rate = per_second(random() % 3 == 0 ? 0 : draw(random, 0.1, 1000))});
  }
  std::rotate(steps.begin(), steps.begin() + static_cast<int>(random() % steps.size()),
              steps.end());
  return RateTrace(steps);
}

double finish_by_integration(const RateTrace& trace, double start, double bytes) {
  for (double at = start;; at += kTiny) {
    const double rate = trace.at(Seconds(at + kTiny / 2)).bytes_per_second;
    if (rate * kTiny >= bytes) return at + bytes / rate;
    bytes -= rate * kTiny;
  }
}

double per_period(const RateTrace& trace) {
  return trace.mean().bytes_per_second * trace.period().count();
}

TEST(RateTrace, ConstantRatesTakeBytesOverRate) {
  const RateTrace trace = RateTrace::constant(per_second(50));
  EXPECT_TRUE(trace.is_constant());
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(3.25), 1000).count(), 23.25);
  EXPECT_DOUBLE_EQ(trace.at(Seconds(1e6)).bytes_per_second, 50);
  EXPECT_DOUBLE_EQ(trace.mean().bytes_per_second, 50);
}

TEST(RateTrace, FinishesWhereIntegrationInTinyStepsDoes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const RateTrace trace = random_trace(random);
    const double start = kTiny * static_cast<double>(random() % 500);
    const double bytes = draw(random, 0, 4 * per_period(trace));
    EXPECT_NEAR(trace.finish(Seconds(start), bytes).count(),
                finish_by_integration(trace, start, bytes), 1e-9)
        << "case " << i;
  }
}

TEST(RateTrace, TwoTransfersInARowTakeAsLongAsOne) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const RateTrace trace = random_trace(random);
    const Seconds start(draw(random, 0, 50));
    const double first = draw(random, 0, 3 * per_period(trace));
    const double second = draw(random, 0, 3 * per_period(trace));
    const Seconds apart = trace.finish(trace.finish(start, first), second);
    EXPECT_NEAR(apart.count(), trace.finish(start, first + second).count(), 1e-9) << "case " << i;
  }
}

TEST(RateTrace, MoreBytesOrALaterStartNeverFinishEarlier) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    const RateTrace trace = random_trace(random);
    const double start = draw(random, 0, 20);
    const double bytes = draw(random, 0, 2 * per_period(trace));
    const Seconds end = trace.finish(Seconds(start), bytes);
    EXPECT_GE(end.count(), start);
    EXPECT_GE(trace.finish(Seconds(start), bytes * 1.01), end);
    EXPECT_GE(trace.finish(Seconds(start + 0.01), bytes).count(), end.count() - 1e-12);
  }
}

TEST(RateTrace, WholePeriodsOfBytesTakeWholePeriodsOfTime) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100; ++i) {
    const RateTrace trace = random_trace(random);
    const double bytes = draw(random, 0, per_period(trace));
    const double periods = static_cast<double>(random() % 100'000);
    const double expected = (trace.finish(Seconds(0), bytes) + periods * trace.period()).count();
    const double got = trace.finish(Seconds(0), bytes + periods * per_period(trace)).count();
    EXPECT_NEAR(got, expected, 1e-9 * expected + 1e-9) << "case " << i;
  }
}

TEST(RateTrace, WaitsOutAStretchWithoutAnyRate) {
  const RateTrace trace({{.duration = Seconds(1), .rate = per_second(10)},
                         {.duration = Seconds(5), .rate = per_second(0)},
                         {.duration = Seconds(1), .rate = per_second(20)}});
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(0), 10).count(), 1);  // the last byte is just in time
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(0), 12).count(), 6.1);
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(3), 20).count(), 7);
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(3), 25).count(), 7.5);
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(0), 0).count(), 0);
}

TEST(RateTrace, WhatFillsAPeriodExactlyDoesNotWaitForTheNextOne) {
  const RateTrace trace({{.duration = Seconds(5), .rate = per_second(0)},
                         {.duration = Seconds(1), .rate = per_second(10)}});
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(0), 10).count(), 6);
  EXPECT_DOUBLE_EQ(trace.finish(Seconds(6), 20).count(), 18);
}

TEST(RateTrace, TimeStandsStillWhereBytesAreLostInRounding) {
  const RateTrace trace({{.duration = Seconds(1), .rate = per_second(1e18)},
                         {.duration = Seconds(9), .rate = per_second(0)}});
  EXPECT_GE(trace.finish(Seconds(5), 1).count(), 5);
}

TEST(RateTrace, MeanIsBytesOverTimeAndScalingKeepsTheShape) {
  const RateTrace trace({{.duration = Seconds(1), .rate = per_second(10)},
                         {.duration = Seconds(3), .rate = per_second(50)}});
  EXPECT_DOUBLE_EQ(trace.mean().bytes_per_second, 40);
  const RateTrace scaled = trace.scaled_to(per_second(4));
  EXPECT_DOUBLE_EQ(scaled.mean().bytes_per_second, 4);
  EXPECT_DOUBLE_EQ(scaled.period().count(), 4);
  EXPECT_DOUBLE_EQ(scaled.at(Seconds(0.5)).bytes_per_second, 1);
  EXPECT_DOUBLE_EQ(scaled.at(Seconds(4 + 1)).bytes_per_second, 5);
}

TEST(RateTrace, RefusesStepsThatNothingCouldPass) {
  EXPECT_THROW(RateTrace({}), std::logic_error);
  EXPECT_THROW(RateTrace({{.duration = Seconds(0), .rate = per_second(1)}}), std::logic_error);
  EXPECT_THROW(RateTrace({{.duration = Seconds(1), .rate = per_second(-1)}}), std::logic_error);
  EXPECT_THROW(RateTrace({{.duration = Seconds(1), .rate = per_second(0)}}), std::logic_error);
}

TEST(CsvTrace, EachRateHoldsUntilTheNextRow) {
  for (const char* text : {"t_s,mbps\n0,8\n2,16\n", "0,8\n2,16", "\r\n 0 ,\t8\r\n\n2,16 \r\n"}) {
    const Result<RateTrace> trace = parse_csv_trace(text);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_DOUBLE_EQ(trace->period().count(), 4);  // the last row lasts as long as the one before
    EXPECT_DOUBLE_EQ(trace->at(Seconds(1)).bytes_per_second, 1e6);
    EXPECT_DOUBLE_EQ(trace->at(Seconds(3)).bytes_per_second, 2e6);
  }
}

TEST(CsvTrace, TimeBeginsAtTheFirstRow) {
  const Result<RateTrace> trace = parse_csv_trace("100,8\n101,0\n103,80\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_DOUBLE_EQ(trace->period().count(), 5);
  EXPECT_DOUBLE_EQ(trace->at(Seconds(0.5)).bytes_per_second, 1e6);
}

TEST(CsvTrace, ErrorsNameTheLine) {
  const auto message = [](std::string_view text) {
    const Result<RateTrace> trace = parse_csv_trace(text);
    return trace.ok() ? "no error" : trace.error().message;
  };
  EXPECT_THAT(message("t_s,mbps\n0,8\n\n1;9\n"), HasSubstr("line 4"));
  EXPECT_THAT(message("0,8\n1,-9\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("0,8\n1,nan\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("0,8\n1,inf\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("0,8\n1,1e999\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("0,8\n1,1e300\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("0,8\n1,9,10\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("0,8\n0,9\n"), HasSubstr("line 2: expected a later time"));
  EXPECT_THAT(message("0,8\nt_s,mbps\n1,9\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("0,8\n"), HasSubstr("two rows"));
  EXPECT_THAT(message(""), HasSubstr("two rows"));
  EXPECT_THAT(message("0,0\n1,0\n"), HasSubstr("not one byte"));
  EXPECT_THAT(message("0,1e-300\n1e-6,1e-300\n"), HasSubstr("not one byte"));
  EXPECT_THAT(message("0,1\n0.9999999999999999,1\n1,1\n"), HasSubstr("line 3"));
  EXPECT_LT(message(std::string(1'000'000, 'x')).size(), 200U);
}

TEST(MahimahiTrace, EveryLineIsAPacketAndTheLastOneTheEnd) {
  const Result<RateTrace> trace = parse_mahimahi_trace("0\n50\n50\n100\n101\n 250\r\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_DOUBLE_EQ(trace->period().count(), 0.25);
  EXPECT_DOUBLE_EQ(per_period(*trace), 6 * 1500);
  EXPECT_DOUBLE_EQ(trace->at(Seconds(0.05)).bytes_per_second, 4 * 1500 / 0.1);
  EXPECT_DOUBLE_EQ(trace->at(Seconds(0.15)).bytes_per_second, 1500 / 0.1);
  EXPECT_DOUBLE_EQ(trace->at(Seconds(0.22)).bytes_per_second, 1500 / 0.05);
}

TEST(MahimahiTrace, ErrorsNameTheLine) {
  const auto message = [](std::string_view text) {
    const Result<RateTrace> trace = parse_mahimahi_trace(text);
    return trace.ok() ? "no error" : trace.error().message;
  };
  EXPECT_THAT(message("1\n2.5\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("5\n\n4\n"), HasSubstr("line 3"));
  EXPECT_THAT(message("1\n-2\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("1\n99999999999999999999\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("1\n1000000000\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("1 2\n"), HasSubstr("line 1"));
  EXPECT_THAT(message(""), HasSubstr("at least one"));
  EXPECT_THAT(message("0\n0\n"), HasSubstr("at least one"));
}

// Whatever the text, a trace is usable or an error; never an exception.
TEST(TraceText, GarbageIsAnErrorOrAUsableTrace) {
  constexpr std::string_view kAlphabet("0123456789.,-+e \n\n\r\tx\0\xff", 24);
  std::mt19937_64 random(5);
  for (int i = 0; i < 800; ++i) {
    std::string text = i % 2 == 0 ? "0,1\n" : "";
    for (std::size_t length = random() % 24; text.size() < length;)
      text.push_back(kAlphabet[random() % kAlphabet.size()]);
    for (const auto parse : {parse_csv_trace, parse_mahimahi_trace}) {
      const Result<RateTrace> trace = parse(text);
      if (!trace.ok()) continue;
      EXPECT_GT(trace->mean().bytes_per_second, 0) << text;
      EXPECT_TRUE(std::isfinite(trace->finish(Seconds(1), 1e6).count())) << text;
    }
  }
}

TEST(MarkovTrace, IsTheSameForTheSameSeedOnly) {
  const auto rates = [](std::uint64_t seed) {
    const RateTrace trace = markov_trace({.mean = per_second(1e6), .seed = seed});
    std::vector<double> samples;
    for (int i = 0; i < 600; ++i) samples.push_back(trace.at(Seconds(i)).bytes_per_second);
    return samples;
  };
  EXPECT_EQ(rates(7), rates(7));
  EXPECT_NE(rates(7), rates(8));
}

TEST(MarkovTrace, HasExactlyTheMeanAndRatesWithinTheSpread) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RateTrace trace = markov_trace({.mean = per_second(1e6), .spread = 0.4, .seed = seed});
    EXPECT_NEAR(trace.mean().bytes_per_second, 1e6, 1e-6);
    EXPECT_NEAR(trace.period().count(), 600, 1e-9);
    double low = std::numeric_limits<double>::max();
    double high = 0;
    for (int i = 0; i < 600; ++i) {
      low = std::min(low, trace.at(Seconds(i)).bytes_per_second);
      high = std::max(high, trace.at(Seconds(i)).bytes_per_second);
    }
    // The mean is reached by one factor for all rates, so their ratio is that of the bounds.
    EXPECT_GT(high, low);
    EXPECT_LE(high / low, 1.4 / 0.6 + 1e-9);
  }
}

TEST(MarkovTrace, ChangesAboutOncePerDwell) {
  int changes = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const RateTrace trace = markov_trace(
        {.mean = per_second(1e6), .mean_dwell = Seconds(2), .length = Seconds(200), .seed = seed});
    constexpr double kGlance = 0.05;
    for (double at = kGlance; at < 200; at += kGlance)
      changes += trace.at(Seconds(at)) != trace.at(Seconds(at - kGlance)) ? 1 : 0;
  }
  EXPECT_NEAR(changes, 1000, 100);  // 10 · 200 s / 2 s, three deviations
}

TEST(MarkovTrace, RefusesRatesThatNeverChangeOrEnd) {
  EXPECT_THROW(markov_trace({.mean = per_second(1), .mean_dwell = Seconds(0)}), std::logic_error);
  EXPECT_THROW(markov_trace({.mean = per_second(1), .spread = 1}), std::logic_error);
  EXPECT_THROW(markov_trace({.mean = per_second(1), .length = Seconds(0)}), std::logic_error);
  EXPECT_THROW(markov_trace({.mean = per_second(0)}), std::logic_error);
}

}  // namespace
}  // namespace longhaul
