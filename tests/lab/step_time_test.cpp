// The lab's virtual step time, which comes from events, against the formula, which does not know of
// them.
#include "longhaul/plan/step_time.h"

#include <gtest/gtest.h>

#include <string>

#include "longhaul/lab/run.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::lab {
namespace {

constexpr std::size_t kElements = 4000;
constexpr double kDenseBytes = 4.0 * kElements;
constexpr Seconds kStep(0.05);

struct Point {
  double alpha_up = 1;  // share of a dense update that one step carries up
  double alpha_down = 1;
  double beta = 1;  // loop latency in steps
  double keep_ratio = 1;
  int delay_steps = 0;
  bool unequal = false;
};

Scenario scenario_at(const Point& point) {
  Scenario scenario;
  scenario.train.steps = 24 * (static_cast<std::size_t>(point.delay_steps) + 1) + 12;
  scenario.train.lr = 1e-4;
  scenario.eval.every = 1'000'000;
  scenario.target.value = 2;
  for (int i = 0; i < 4; ++i) {
    // Unequal: replica 1 computes slowly, replica 2 sends slowly, replica 3 is far away.
    const double slow_step = point.unequal && i == 1 ? 1.4 : 1.0;
    const double slow_up = point.unequal && i == 2 ? 0.7 : 1.0;
    const double far = point.unequal && i == 3 ? 2.5 : 1.0;
    ReplicaOptions replica;
    replica.step_time = kStep * slow_step;
    replica.link.up = {.bytes_per_second = point.alpha_up * slow_up * kDenseBytes / kStep.count()};
    replica.link.down = {.bytes_per_second = point.alpha_down * kDenseBytes / kStep.count()};
    replica.link.latency = kStep * point.beta * far / 2;
    scenario.replicas.push_back(replica);
  }
  return scenario;
}

RunResult run_at(const Point& point, const Scenario& scenario) {
  longhaul::testing::QuadraticWorkload workload(kElements);
  Workers workers(1);
  // Random-k: its payloads have the same size in every round, so that the formula has one size to
  // know.
  const std::string codec = point.keep_ratio == 1 ? "dense/fp32" : "random_k/bf16";
  const RunOptions request{
      .recipe = "dd-ef-sgd" + formatted(":keep_ratio=%.17g", point.keep_ratio) +
                ":delay_steps=" + std::to_string(point.delay_steps) + ":codec=" + codec};
  return run(scenario, request, workload, workers).value();
}

Seconds formula_at(const Point& point, const Scenario& scenario, const RunResult& result) {
  const double rounds = static_cast<double>(result.steps) * 4;
  Conditions replicas;
  for (const ReplicaOptions& replica : scenario.replicas) {
    replicas.push_back({.compute = replica.step_time,
                        .latency = replica.link.latency,
                        .up = replica.link.up,
                        .down = replica.link.down});
  }
  return step_time(replicas,
                   {.up = static_cast<double>(result.bytes_up) / rounds,
                    .down = static_cast<double>(result.bytes_down) / rounds},
                   point.delay_steps);
}

TEST(StepTime, OfTheLabFollowsTheFormulaOnAGrid) {
  int points = 0;
  double worst = 0;
  for (const double alpha_up : {0.05, 0.3, 2.0}) {
    for (const double alpha_down : {0.1, 1.0}) {
      for (const double beta : {0.5, 2.0, 4.3}) {
        for (const auto& [keep_ratio, delay_steps] :
             {std::pair{1.0, 0}, {0.05, 0}, {0.02, 3}, {0.1, 6}}) {
          const Point point{alpha_up, alpha_down, beta, keep_ratio, delay_steps, ++points % 2 == 0};
          const Scenario scenario = scenario_at(point);
          const RunResult result = run_at(point, scenario);
          const Seconds predicted = formula_at(point, scenario, result);
          const double off = std::abs(result.step_time / predicted - 1.0);
          worst = std::max(worst, off);
          EXPECT_LT(off, 0.01) << "α " << alpha_up << '/' << alpha_down << " β " << beta << " δ "
                               << keep_ratio << " τ " << delay_steps
                               << (point.unequal ? " unequal" : "") << ": measured "
                               << result.step_time.count() << " s, formula " << predicted.count()
                               << " s";
        }
      }
    }
  }
  EXPECT_GE(points, 50);
  RecordProperty("points", points);
  RecordProperty("worst", std::to_string(worst));
  std::printf("step time: %d points, worst deviation %.4f %%\n", points, 100 * worst);
}

}  // namespace
}  // namespace longhaul::lab
