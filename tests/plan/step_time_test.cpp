// The formula of the step time against a simulation of every event.
#include "longhaul/plan/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/plan/random_conditions.h"

namespace longhaul {
namespace {

// When step number `steps` ends, if replicas send `size` in each period and merge `delay` steps
// late. A replica submits at the end of computing a period; its line serves one message after the
// other; a round closes at the last arrival; a replica may not begin step s + 1 before it holds the
// mean of round s - delay.
struct Events {
  Events(const Conditions& conditions, const RoundSize& round_size, int delay_steps,
         int period_steps)
      : replicas(conditions),
        size(round_size),
        delay(static_cast<std::size_t>(delay_steps)),
        period(static_cast<std::size_t>(period_steps)),
        ready(conditions.size()),
        up_free(conditions.size()),
        down_free(conditions.size()) {}

  double end_of(std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < replicas.size(); ++i) ready[i] += replicas[i].compute.count();
      std::vector<double>& arrived = arrivals.emplace_back();
      if ((step + 1) % period == 0) exchange(arrived);
      if (step < delay || arrivals[step - delay].empty()) continue;
      for (std::size_t i = 0; i < replicas.size(); ++i)
        ready[i] = std::max(ready[i], arrivals[step - delay][i]);
    }
    return *std::ranges::max_element(ready);
  }
  void exchange(std::vector<double>& arrived) {
    double closed = 0;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      up_free[i] = std::max(up_free[i], ready[i]) + size.up / replicas[i].up.bytes_per_second;
      closed = std::max(closed, up_free[i] + replicas[i].latency.count());
    }
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      down_free[i] = std::max(down_free[i], closed) + size.down / replicas[i].down.bytes_per_second;
      arrived.push_back(down_free[i] + replicas[i].latency.count());
    }
  }

  const Conditions& replicas;
  RoundSize size;
  std::size_t delay;
  std::size_t period;
  std::vector<double> ready;
  std::vector<double> up_free;
  std::vector<double> down_free;
  std::vector<std::vector<double>> arrivals;
};

TEST(StepTime, IsTheSlopeOfASimulationOfEveryEvent) {
  constexpr double kDense = 4e6;
  std::mt19937_64 random(5);
  double worst = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Conditions replicas = testing::random_conditions(random, 1 + random() % 5, kDense);
    const RoundSize size{.up = kDense * testing::uniform_in(random, 0.001, 1),
                         .down = kDense * testing::uniform_in(random, 0.001, 1)};
    const int delay = static_cast<int>(random() % 9);
    const int period = trial % 2 == 0 ? 1 : 1 + static_cast<int>(random() % 6);
    const auto cycle = static_cast<std::size_t>((delay / period + 1) * period);
    const double from = Events(replicas, size, delay, period).end_of(200 * cycle);
    const double to = Events(replicas, size, delay, period).end_of(400 * cycle);
    const double slope = (to - from) / static_cast<double>(200 * cycle);
    const double off = std::abs(step_time(replicas, size, delay, period).count() / slope - 1);
    worst = std::max(worst, off);
    EXPECT_LT(off, 0.001) << "trial " << trial << " delay " << delay << " period " << period;
  }
  std::printf("step time against events: worst deviation %.2e\n", worst);
}

}  // namespace
}  // namespace longhaul
