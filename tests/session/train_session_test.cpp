// Sessions over a hub in this process: the news of a run, and a run that stops and goes on.
#include "longhaul/session/train_session.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/hub/hub.h"
#include "longhaul/transport/local.h"
#include "tests/hub/test_directory.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul {
namespace {

constexpr std::size_t kElements = 200;
constexpr std::size_t kSteps = 30;

class NotingObserver final : public SessionObserver {
 public:
  void on_start(std::size_t slot, std::uint64_t step) override {
    EXPECT_EQ(slot, 0U);
    started = step;
  }
  void on_step(const StepFacts& /*facts*/, const Engine& engine) override {
    steps = engine.steps_done();
    if (stops && steps == kSteps / 2) stops();
  }
  void on_replaced(const Replaced& /*replaced*/) override { ++replaced; }
  void on_score(const Score& score) override { scores.push_back(score); }
  void on_link(const LinkNews& /*news*/) override {}
  void on_checkpoint(const Result<std::uint64_t>& step) override {
    ASSERT_TRUE(step.ok());
    saved = *step;
  }

  std::function<void()> stops;  // in the middle
  std::optional<std::uint64_t> started;
  std::uint64_t steps = 0;
  std::size_t replaced = 0;
  std::vector<Score> scores;
  std::optional<std::uint64_t> saved;
};

Job job_of_one() {
  Scenario scenario;
  scenario.train.steps = kSteps;
  scenario.train.lr = 0.02;
  scenario.eval = {.every = 5, .samples = 1};
  scenario.replicas.emplace_back();
  return make_job(scenario, "static", 1).value();
}

class TrainSessionTest : public ::testing::Test {
 protected:
  void start_hub(const std::filesystem::path& directory = {}) {
    hub_.reset();
    HubOptions options{
        .training = {.engine = engine_options(job_of_one(), workload_.layers()).value(),
                     .steps = kSteps,
                     .replicas = 1,
                     .directory = directory},
        .evaluates = true};
    hub_ = Hub::start(std::move(options), clock_, Log(LogLevel::kOff)).value();
  }

  SessionOptions options(const std::filesystem::path& file = {}) const {
    const std::span bytes = std::as_bytes(workload_.initial_parameters());
    return {.client = {.name = "one",
                       .elements = kElements,
                       .layers = workload_.layers(),
                       .initial = std::make_shared<const ByteBuffer>(bytes.begin(), bytes.end())},
            .job = job_of_one(),
            .checkpoints = {.file = file}};
  }

  // Runs a session to its end, and returns the digest of its model.
  std::uint64_t run(SessionOptions options, NotingObserver& observer, Ending ending) {
    LocalNetwork network(hub_->acceptor(), "one");
    TrainSession session(std::move(options), workload_, network, clock_, observer);
    const Result<Ending> ended = session.run();
    EXPECT_TRUE(ended.ok()) << ended.error().message;
    EXPECT_EQ(*ended, ending);
    EXPECT_TRUE(session.is_merged());
    const std::uint64_t digest = digest_of(session.engine().shared());
    session.leave();
    return digest;
  }

  Clock clock_;
  testing::QuadraticWorkload workload_{kElements};
  std::unique_ptr<Hub> hub_;
};

TEST_F(TrainSessionTest, TellsOfItsStartItsStepsAndItsScores) {
  start_hub();
  NotingObserver observer;
  (void)run(options(), observer, Ending::kFinished);
  EXPECT_EQ(observer.started, 0U);
  EXPECT_EQ(observer.steps, kSteps);
  EXPECT_EQ(observer.replaced, 0U);
  ASSERT_FALSE(observer.scores.empty());
  EXPECT_TRUE(observer.scores.back().is_closing);
  EXPECT_EQ(observer.scores.back().step, kSteps);
}

TEST_F(TrainSessionTest, GoesOnFromItsCheckpointWhenTheHubWasStopped) {
  start_hub();
  NotingObserver undisturbed;
  const std::uint64_t expected = run(options(), undisturbed, Ending::kFinished);

  const std::filesystem::path directory = testing::test_directory();
  const std::filesystem::path file = directory / "one.safetensors";
  std::filesystem::create_directories(directory);
  start_hub(directory / "hub");
  NotingObserver stopped;
  stopped.stops = [this] { hub_->finish(v1::CAUSE_STOPPED); };
  (void)run(options(file), stopped, Ending::kStopped);
  ASSERT_LT(stopped.steps, kSteps);
  ASSERT_EQ(stopped.saved, stopped.steps);

  start_hub(directory / "hub");
  SessionOptions again = options(file);
  again.checkpoint = read_checkpoint(file).value();
  NotingObserver resumed;
  EXPECT_EQ(run(std::move(again), resumed, Ending::kFinished), expected);
  EXPECT_EQ(resumed.started, stopped.steps);
  EXPECT_EQ(resumed.replaced, 0U);
  hub_.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace longhaul
