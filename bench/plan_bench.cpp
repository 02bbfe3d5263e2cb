// How long a planner's decision takes: a hub makes one for every round.
#include <benchmark/benchmark.h>

#include <random>

#include "longhaul/plan/auto_planner.h"

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

void tabulate(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(RoundSizes(kTopBf16, 124'000'000, 4));
}
BENCHMARK(tabulate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace longhaul
