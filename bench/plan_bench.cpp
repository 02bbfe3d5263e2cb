// How long a planner's decision takes: a hub makes one for every round, or period of layers.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <string>

#include "longhaul/plan/auto_planner.h"
#include "longhaul/plan/layer_schedule.h"

namespace longhaul {
namespace {

constexpr CodecOptions kTopBf16{.kind = CodecKind::kTopK, .values = ValueFormat::kBf16};

// No two alike, as measured ones are.
Conditions links(std::size_t replicas, double bits_per_second) {
  std::mt19937_64 random(7);
  const auto about = [&](double value) {
    return value * std::uniform_real_distribution(0.9, 1.1)(random);
  };
  Conditions links;
  while (links.size() < replicas)
    links.push_back({.compute = Seconds(about(0.06)),
                     .latency = Seconds(about(0.06)),
                     .up = Bandwidth::from_bits_per_second(about(bits_per_second)),
                     .down = Bandwidth::from_bits_per_second(about(bits_per_second))});
  return links;
}

void decide(benchmark::State& state, PlannerKind kind, double bits_per_second = 5.4e6) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const auto planner = make_planner({.kind = kind}, RoundSizes(kTopBf16, 101'122, n));
  const Conditions replicas = links(n, bits_per_second);
  for (auto _ : state) benchmark::DoNotOptimize(planner->first(replicas));
}

BENCHMARK_CAPTURE(decide, deco, PlannerKind::kDeco)->Arg(2)->Arg(4)->Arg(8);
BENCHMARK_CAPTURE(decide, auto, PlannerKind::kAuto) -> Arg(2) -> Arg(4) -> Arg(8);
BENCHMARK_CAPTURE(decide, auto_on_slow_links, PlannerKind::kAuto, 5.4e4)->Arg(4)->Arg(8);

// The decision with so many layers: the search for a schedule, and with it that for a ratio.
void decide_with_layers(benchmark::State& state) {
  LayerProfile parts;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    parts.layers.push_back({.name = std::to_string(i),
                            .forward = Seconds(1),
                            .backward = Seconds(2),
                            .bytes = 4.0 * 101'122 / static_cast<double>(state.range(0))});
  const auto planner =
      make_planner({.kind = PlannerKind::kAuto, .parts = parts}, RoundSizes(kTopBf16, 101'122, 4));
  const Conditions replicas = links(4, static_cast<double>(state.range(1)) * 1e6);
  for (auto _ : state) benchmark::DoNotOptimize(planner->first(replicas));
}
BENCHMARK(decide_with_layers)->ArgsProduct({{16, 64}, {5, 100}})->Unit(benchmark::kMillisecond);

void tabulate(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(RoundSizes(kTopBf16, 124'000'000, 4));
}
BENCHMARK(tabulate)->Unit(benchmark::kMillisecond);

// Layers whose sizes differ up to a hundred times, on lines that carry the model in about the time
// of 20 backward passes.
void schedule_layers(benchmark::State& state, LayerPolicy policy) {
  std::mt19937_64 random(7);
  const auto spread = [&] {
    return std::pow(10.0, std::uniform_real_distribution(-2.0, 0.0)(random));
  };
  LayerProfile profile;
  for (int i = 0; i < state.range(0); ++i) {
    const Seconds forward(spread());
    profile.layers.push_back({.name = std::to_string(i),
                              .forward = forward,
                              .backward = 2 * forward,
                              .bytes = spread()});
  }
  constexpr std::size_t kPeriod = 20;
  const Bandwidth rate{profile.bytes() / (kPeriod * profile.backward().count())};
  const LayerLink link{.up = rate, .down = rate, .latency = 0.01 * profile.backward()};
  for (auto _ : state)
    benchmark::DoNotOptimize(make_layer_schedule(profile, link, policy, kPeriod));
}
BENCHMARK_CAPTURE(schedule_layers, dreamddp, LayerPolicy::kScheduled)
    ->Arg(400)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(schedule_layers, dreamddp_late, LayerPolicy::kScheduledLate)
    ->Arg(400)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace longhaul
