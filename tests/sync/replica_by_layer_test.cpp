// A replica by layer without a pace: its step ends in the forward pass of the next one.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/exchange/simulated.h"
#include "longhaul/sync/replica.h"
#include "tests/base/fake_clock.h"
#include "tests/sync/cluster.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kElements = 240;
constexpr std::uint64_t kSteps = 30;

// Reads the elements of its layers one after the other, each just after it has told of them.
class LayerwiseLearner final : public Learner {
 public:
  explicit LayerwiseLearner(std::unique_ptr<Learner> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::span<float> parameters() override { return inner_->parameters(); }
  [[nodiscard]] std::span<float> gradient() override { return inner_->gradient(); }
  double compute_gradient() override { return inner_->compute_gradient(); }
  double compute_gradient_by_layers(const LayerWatch& watch) override {
    const std::vector<Part> layers = split_into_parts({}, kElements, 7);
    std::vector<float> read(kElements);
    for (std::size_t i = layers.size(); i-- > 0;) {
      if (watch.before_use) watch.before_use(layers[i].first, layers[i].count);
      std::ranges::copy(layers[i].of(parameters()), layers[i].of(std::span(read)).begin());
    }
    EXPECT_TRUE(std::ranges::equal(read, parameters())) << "moved after it was read";
    forward_passes_ += watch.before_use ? 1 : 0;
    const double loss = inner_->compute_gradient();
    if (watch.forward_done) watch.forward_done();
    for (const Part& layer : layers) {
      if (watch.ready) watch.ready(layer.first, layer.count);
    }
    return loss;
  }
  void save(State& state) const override { inner_->save(state); }
  Status load(const State& state) override { return inner_->load(state); }

  // Counts those that merged means on the way.
  [[nodiscard]] int merging_passes() const { return forward_passes_; }

 private:
  std::unique_ptr<Learner> inner_;
  int forward_passes_ = 0;
};

// Says that no mean is there yet, if asked to.
class Member final : public Membership {
 public:
  Result<std::optional<Plan>> first_plan(Deadline /*deadline*/) override {
    return std::optional(plan);
  }
  Result<Stance> stance(std::uint64_t step, RoundId /*round*/, Deadline /*deadline*/) override {
    if (snapshot) return Stance::kRestart;
    return step < kSteps ? Stance::kTakePart : Stance::kFinish;
  }
  State take_snapshot() override { return *std::exchange(snapshot, std::nullopt); }
  [[nodiscard]] std::size_t updates_in_flight() const override { return 0; }
  Status await(RoundId /*round*/, Deadline /*deadline*/) override {
    if (is_slow) return Error{ErrorCode::kDeadline, "not yet"};
    return Done{};
  }
  void report(const StepReport& report) override { reports.push_back(report); }
  void save(State& /*checkpoint*/) const override {}

  bool is_slow = false;
  Plan plan;
  std::optional<State> snapshot;
  std::vector<StepReport> reports;
};

// Fails to collect as often as it is told.
class FailingExchange final : public Exchange {
 public:
  explicit FailingExchange(Exchange& inner) : inner_(inner) {}
  void submit(Update update) override { inner_.submit(std::move(update)); }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    if (failures > 0 && --failures >= 0) return Error{failure, "asked to"};
    return inner_.collect(round, deadline);
  }
  int failures = 0;
  ErrorCode failure = ErrorCode::kDeadline;

 private:
  Exchange& inner_;
};

EngineOptions options_of(const std::string& recipe) {
  EngineOptions options{.recipe = find_recipe(recipe).value(),
                        .lr = {.peak = 0.05, .steps = kSteps},
                        .layers = {{.name = "out.weight", .offset = 0, .count = 90},
                                   {.name = "in.weight", .offset = 90, .count = 150}},
                        .replicas = 2};
  options.recipe.plan.period_steps = std::min(options.recipe.plan.period_steps, 3);
  return options;
}

struct One {
  One(const std::string& recipe, std::size_t slot, bool is_slow, Workload& workload,
      SimulatedNetwork& network)
      : learner(workload.make_learner(slot)),
        exchange(network.exchange(slot)),
        replica({.engine = options_of(recipe),
                 .workers = workers,
                 .clock = clock,
                 .goes_on = [this] { return waits-- > 0; }},
                learner, member, exchange) {
    member.plan = options_of(recipe).recipe.plan;
    member.is_slow = is_slow;
  }
  int waits = 0;  // how often it waits on
  FakeClock clock;
  Workers workers{1};
  LayerwiseLearner learner;
  Member member;
  FailingExchange exchange;
  Replica replica;
};

class Two {
 public:
  Two(const std::string& recipe, bool is_slow) {
    for (std::size_t i = 0; i < 2; ++i) {
      one[i] = std::make_unique<One>(recipe, i, is_slow, workload_, network_);
      EXPECT_TRUE(one[i]->replica.start(Deadline::max()).ok());
    }
  }
  void steps(std::uint64_t count) {
    for (; count > 0; --count) {
      for (const auto& each : one)
        EXPECT_EQ(each->replica.begin_step(Deadline::max()).value(), Stance::kTakePart);
      end_step();
    }
  }
  void end_step() {
    EXPECT_TRUE(network_.settle().ok());
    for (const auto& each : one) EXPECT_TRUE(each->replica.end_step(Deadline::max()).ok());
  }
  std::uint64_t digest() {
    for (const auto& each : one) EXPECT_TRUE(each->replica.finish(Deadline::max()).ok());
    const std::uint64_t digest = digest_of(one[0]->replica.engine().shared());
    EXPECT_EQ(digest_of(one[1]->replica.engine().shared()), digest);
    return digest;
  }

  std::array<std::unique_ptr<One>, 2> one;

 private:
  QuadraticWorkload workload_{kElements};
  Workers workers_{1};
  SimulatedNetwork network_{{{.link = test_link()}, {.link = test_link()}}, workers_};
};

std::uint64_t digest_of_run(const std::string& recipe) {
  Two undisturbed(recipe, false);
  undisturbed.steps(kSteps);
  return undisturbed.digest();
}

class ReplicaByLayer : public ::testing::TestWithParam<const char*> {};

TEST_P(ReplicaByLayer, MergesMeansThatAreLateInTheNextForwardPass) {
  Two slow(GetParam(), true);
  slow.steps(kSteps);
  EXPECT_EQ(slow.digest(), digest_of_run(GetParam()));
  EXPECT_GE(slow.one[0]->learner.merging_passes(), static_cast<int>(kSteps) / 3 - 1);
  EXPECT_EQ(slow.one[0]->member.reports.size(), kSteps - 1) << "one of each step but the last";
}

TEST_P(ReplicaByLayer, ComputesTheSameBatchAgainAfterADeadline) {
  Two two(GetParam(), true);
  two.steps(6);
  two.one[0]->exchange.failures = 2;
  for (int i = 0; i < 2; ++i) {
    const Result<Stance> late = two.one[0]->replica.begin_step(Deadline::max());
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, ErrorCode::kDeadline);
  }
  two.steps(kSteps - 6);
  EXPECT_EQ(two.digest(), digest_of_run(GetParam()));
}

TEST_P(ReplicaByLayer, WaitsOnInTheForwardPassIfItGoesOn) {
  Two two(GetParam(), true);
  two.steps(6);
  two.one[0]->waits = 2;
  two.one[0]->exchange.failures = 2;
  two.steps(kSteps - 6);
  EXPECT_EQ(two.one[0]->waits, 0);
  EXPECT_EQ(two.digest(), digest_of_run(GetParam()));
}

TEST_P(ReplicaByLayer, GoesOnFromACheckpointThatIsOlderThanItsMeans) {
  Two two(GetParam(), true);
  two.steps(7);
  const State saved = two.one[0]->replica.save();
  ASSERT_TRUE(two.one[0]->replica.resume(saved).ok());
  two.steps(kSteps - 7);
  EXPECT_EQ(two.digest(), digest_of_run(GetParam()));
}

TEST_P(ReplicaByLayer, GivesUpTheGradientIfItsStateIsReplaced) {
  Two two(GetParam(), true);
  two.steps(6);
  One& lost = *two.one[0];
  ASSERT_TRUE(two.one[1]->replica.begin_step(Deadline::max()).ok());
  lost.exchange.failures = 1;
  lost.exchange.failure = ErrorCode::kMismatch;
  // Its snapshot was taken before the other one submitted the step that it begins.
  Two same(GetParam(), true);
  same.steps(6);
  ASSERT_TRUE(same.one[1]->replica.settle(Deadline::max()).ok());
  lost.member.snapshot = same.one[1]->replica.engine().save_shared();
  EXPECT_EQ(lost.replica.begin_step(Deadline::max()).value(), Stance::kTakePart);
  EXPECT_EQ(lost.replica.restarts(), 1U);
  two.end_step();
  two.steps(3);
  (void)two.digest();
}

INSTANTIATE_TEST_SUITE_P(Sync, ReplicaByLayer,
                         ::testing::Values("wfbp", "local-sgd-parts", "plsgd-enp", "dreamddp"),
                         [](const auto& recipe) {
                           std::string name = recipe.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace longhaul::testing
