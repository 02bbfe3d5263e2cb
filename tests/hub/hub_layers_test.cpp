// Runs over a hub that go from the whole model to its layers and back, many times.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/hub/fault_run.h"

namespace longhaul {
namespace {

using testing::FaultRun;
using testing::HubRunOptions;

constexpr std::size_t kFewElements = 64;
constexpr std::size_t kManyParts = 16;  // of one layer

// Another plan for every few rounds, by lot; every second one has a schedule.
class RestlessPlanner final : public Planner {
 public:
  RestlessPlanner(const PlannerOptions& options, RoundSizes sizes, std::atomic<int>& swaps)
      : Planner(std::move(sizes), options), swaps_(swaps) {}

  std::optional<Decision> round_closed(const RoundFacts& facts) override {
    if (random_() % 12 != 0) return std::nullopt;
    Plan plan{.keep_ratio = 0.1 * static_cast<double>(1 + random_() % 10),
              .delay_steps = static_cast<int>(random_() % 4),
              .period_steps = 1 + static_cast<int>(random_() % 3),
              .merge = Merge::kLate};
    if (random_() % 2 == 0) {
      plan.schedule.resize(static_cast<std::size_t>(plan.period_steps));
      for (std::uint32_t part = 0; part + 1 < kManyParts; ++part)
        plan.schedule[random_() % plan.schedule.size()].push_back(part);
      plan.schedule.back().push_back(kManyParts - 1);
    }
    if (plan.schedule.empty() != facts.current.schedule.empty()) ++swaps_;
    return as_it_is(facts.replicas, plan, "by lot");
  }

 private:
  std::atomic<int>& swaps_;
  std::mt19937_64 random_{17};
};

HubRunOptions restless_options(const std::string& name, std::atomic<int>& swaps) {
  return {.recipe = "auto",
          .elements = kFewElements,
          .steps = 400,
          .lr = 0.05,
          .directory = std::filesystem::path(::testing::TempDir()) / ("longhaul_layers_" + name),
          .journal = {.rounds = 300, .log_rounds = 40},
          .silence = Seconds(0.2),
          .patience = Seconds(0.5),
          .step_time = Seconds(0.0005),
          .planner = [&swaps](const PlannerOptions& options, RoundSizes sizes) {
            return std::make_unique<RestlessPlanner>(options, std::move(sizes), swaps);
          }};
}

TEST(HubLayers, AllReplicasEndWithOneModel) {
  std::atomic<int> swaps{0};
  FaultRun run(restless_options("quiet", swaps), 1);
  ASSERT_TRUE(run.ends());
  run.expect_one_good_model();
  EXPECT_EQ(run.replica(0).engine().steps_done(), 400U);
  EXPECT_GT(swaps, 10);
}

// Replicas go on from checkpoints and the hub from its journal, of either kind of plan.
TEST(HubLayers, AllReplicasEndWithOneModelWhateverBreaks) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    std::atomic<int> swaps{0};
    HubRunOptions options = restless_options("broken", swaps);
    options.save_every = 20;
    FaultRun run(options, seed);
    ASSERT_TRUE(run.finishes_among_faults());
    run.expect_one_model();
    EXPECT_EQ(run.replica(0).engine().steps_done(), 400U);
    EXPECT_GT(swaps, 10);
  }
}

// Without checkpoints those that were killed come back as late replicas do, with the hub's model.
TEST(HubLayers, ALateReplicaHasTheModelOfTheOthers) {
  std::atomic<int> swaps{0};
  HubRunOptions options = restless_options("late", swaps);
  options.is_open_ended = true;
  FaultRun run(options, 4);
  ASSERT_TRUE(run.reaches(30));
  for (int i = 0; i < 30; ++i) {
    run.kill_or_start(static_cast<std::size_t>(i) % 3);
    run.wait(Seconds(0.02));
  }
  ASSERT_TRUE(run.finishes());
  run.expect_one_good_model();
  EXPECT_GT(swaps, 10);
}

}  // namespace
}  // namespace longhaul
