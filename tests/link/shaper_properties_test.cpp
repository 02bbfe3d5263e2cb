// What holds for a shaped line under any traffic: nothing lost, nothing too fast, nobody left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "longhaul/link/shaper.h"

namespace longhaul {
namespace {

using Slices = std::vector<Shaper::Delivery>;

constexpr Seconds kLatency{0.05};

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution(low, high)(random);
}

RateTrace random_rates(std::mt19937_64& random) {
  std::vector<RateStep> steps{{.duration = Seconds(0.1), .rate = {.bytes_per_second = 1e5}}};
  for (std::size_t i = random() % 5; i > 0; --i) {
    const double rate = random() % 3 == 0 ? 0 : uniform(random, 1e3, 1e6);
    steps.push_back(
        {.duration = Seconds(uniform(random, 0.01, 0.3)), .rate = {.bytes_per_second = rate}});
  }
  std::shuffle(steps.begin(), steps.end(), random);
  return RateTrace(steps);
}

struct Push {
  Seconds at{};
  Shaper::ConnectionId connection = 0;
  std::size_t bytes = 0;
};

// Bursts of a few connections with quiet times between them.
std::vector<Push> random_pushes(std::mt19937_64& random) {
  std::vector<Push> pushes;
  Seconds at{};
  for (int i = 0; i < 30; ++i) {
    if (random() % 2 == 0) at += Seconds(uniform(random, 0, 0.1));
    pushes.push_back({.at = at, .connection = random() % 4, .bytes = 1 + random() % 9000});
  }
  return pushes;
}

// Looks at the line now and then between pushes, as often as `looks` says.
Slices pass(const RateTrace& trace, const std::vector<Push>& pushes, int looks,
            std::mt19937_64& random) {
  Shaper shaper(trace, kLatency);
  Slices out;
  const auto look = [&](Seconds now) {
    while (const auto slice = shaper.pop(now)) out.push_back(*slice);
  };
  Seconds now{};
  for (const Push& push : pushes) {
    for (int i = 0; i < looks; ++i) {
      now += Seconds(uniform(random, 0, 1) * (push.at - now).count());
      look(now);
    }
    now = push.at;
    shaper.push(now, push.connection, push.bytes, now);
  }
  look(Seconds(1e9));
  return out;
}

std::map<Shaper::ConnectionId, std::size_t> totals(const Slices& slices) {
  std::map<Shaper::ConnectionId, std::size_t> bytes;
  for (const auto& slice : slices) bytes[slice.connection] += slice.bytes;
  return bytes;
}

TEST(ShaperProperties, EveryByteComesOutOnceAndNotBeforeItsTime) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    const RateTrace trace = random_rates(random);
    const auto pushes = random_pushes(random);
    const Slices slices = pass(trace, pushes, 2, random);
    std::map<Shaper::ConnectionId, std::size_t> pushed;
    for (const Push& push : pushes) pushed[push.connection] += push.bytes;
    EXPECT_EQ(totals(slices), pushed) << "case " << i;
    EXPECT_TRUE(std::ranges::is_sorted(slices, {}, &Shaper::Delivery::due)) << "case " << i;
    // The n-th byte of a connection comes out at least a latency after it went in.
    std::map<Shaper::ConnectionId, std::size_t> seen;
    for (const auto& slice : slices) {
      std::size_t left = seen[slice.connection] += slice.bytes;
      const auto last = std::ranges::find_if(pushes, [&](const Push& push) {
        if (push.connection != slice.connection) return false;
        if (push.bytes >= left) return true;
        left -= push.bytes;
        return false;
      });
      ASSERT_NE(last, pushes.end());
      EXPECT_GE(slice.due, last->at + kLatency);
    }
  }
}

TEST(ShaperProperties, NoWindowHoldsMoreThanTheRateAllowsAndOneSlice) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 5; ++i) {
    const RateTrace trace = random_rates(random);
    const Slices slices = pass(trace, random_pushes(random), 2, random);
    for (std::size_t from = 0; from < slices.size(); ++from) {
      const Seconds window_start = slices[from].due - kLatency;  // behind that one slice
      double bytes = 0;
      for (std::size_t to = from + 1; to < slices.size(); ++to) {
        bytes += static_cast<double>(slices[to].bytes);
        ASSERT_LE(trace.finish(window_start, bytes), slices[to].due - kLatency + Seconds(1e-9))
            << "case " << i << ", slices " << from << " to " << to;
      }
    }
  }
}

TEST(ShaperProperties, ItDoesNotMatterHowOftenOneLooks) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const RateTrace trace = random_rates(random);
    const auto pushes = random_pushes(random);
    const Slices seldom = pass(trace, pushes, 0, random);
    const Slices often = pass(trace, pushes, 5, random);
    ASSERT_EQ(seldom.size(), often.size()) << "case " << i;
    for (std::size_t j = 0; j < seldom.size(); ++j) {
      EXPECT_EQ(seldom[j].connection, often[j].connection);
      EXPECT_EQ(seldom[j].due, often[j].due);
    }
  }
}

TEST(ShaperProperties, ABusyLineTakesAsLongAsItsBytes) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20; ++i) {
    const RateTrace trace = random_rates(random);
    Shaper shaper(trace, kLatency);
    double bytes = 0;
    for (Shaper::ConnectionId id = 0; id < 4; ++id) {
      const std::size_t count = 1 + random() % 60'000;
      shaper.push(Seconds(1), id, count, Seconds(1));
      bytes += static_cast<double>(count);
    }
    Seconds last{};
    while (const auto slice = shaper.pop(Seconds(1e9))) last = slice->due;
    EXPECT_NEAR(last.count(), (trace.finish(Seconds(1), bytes) + kLatency).count(), 1e-6);
  }
}

TEST(ShaperProperties, ThoseWhoAlwaysHaveSomethingToSendGetTheSame) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10; ++i) {
    Shaper shaper(RateTrace::constant({.bytes_per_second = uniform(random, 1e4, 1e7)}), kLatency);
    for (Shaper::ConnectionId id = 0; id < 5; ++id)
      shaper.push(Seconds(0), id, 100'000, Seconds(0));
    std::map<Shaper::ConnectionId, std::size_t> bytes;
    for (Shaper::ConnectionId id = 0; id < 5; ++id) bytes[id] = 0;
    for (int turn = 0; turn < 100; ++turn) {
      const auto slice = shaper.pop(Seconds(1e9));
      ASSERT_TRUE(slice);
      bytes[slice->connection] += slice->bytes;
      const auto [least, most] =
          std::ranges::minmax_element(bytes, {}, [](const auto& entry) { return entry.second; });
      EXPECT_LE(most->second - least->second, kMaxSliceBytes) << "turn " << turn;
    }
  }
}

// A sender that always has more, and a loop that wakes up late: as RelayDirection reads.
double bytes_in_one_second(double bytes_per_second, Seconds largest_delay) {
  std::mt19937_64 random(6);
  Shaper shaper(RateTrace::constant({.bytes_per_second = bytes_per_second}), Seconds(0));
  std::optional<Seconds> ready_since;
  double bytes = 0;
  for (Seconds now{}; now < Seconds(1);) {
    while (const std::size_t room = shaper.room(now, 1))
      shaper.push(now, 1, room, ready_since.value_or(now));
    ready_since = now;
    while (const auto slice = shaper.pop(now)) bytes += static_cast<double>(slice->bytes);
    now = *shaper.next_event() + uniform(random, 0, 1) * largest_delay;
  }
  return bytes;
}

TEST(ShaperProperties, KeepsTheRateHoweverLateItsTimerFires) {
  for (const double bytes_per_second : {1.25e5, 2.5e6, 1.25e7, 1.25e8}) {
    EXPECT_NEAR(bytes_in_one_second(bytes_per_second, Seconds(0)) / bytes_per_second, 1, 0.005);
    // The last look may have missed a whole delay.
    EXPECT_NEAR(bytes_in_one_second(bytes_per_second, Seconds(0.004)) / bytes_per_second, 1, 0.01);
  }
}

}  // namespace
}  // namespace longhaul
