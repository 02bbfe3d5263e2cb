// Scoring beside training: one copy at a time, and training never waits for a score.
#include "longhaul/sync/scorer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <latch>

namespace longhaul {
namespace {

constexpr Seconds kLimit{20.0};

// Its score is its first parameter. Scoring the first copy ends when the test lets it.
class HeldWorkload final : public Workload {
 public:
  [[nodiscard]] const LayerTable& layers() const override { return layers_; }
  [[nodiscard]] std::span<const float> initial_parameters() const override { return {}; }
  [[nodiscard]] std::unique_ptr<Learner> make_learner(std::size_t /*index*/) override {
    return nullptr;
  }
  [[nodiscard]] Evaluation evaluate(std::span<const float> parameters,
                                    std::size_t samples) override {
    niceness = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
    released.wait();
    return {.loss = parameters[0], .accuracy = 0.5, .samples = samples};
  }

  std::latch released{1};
  std::atomic<int> niceness{0};

 private:
  LayerTable layers_;
};

Score next_score(Scorer& scorer) {
  const Deadline limit = deadline_after(kLimit);
  while (Clock().now() < limit) {
    if (const auto score = scorer.take()) return *score;
    std::this_thread::yield();
  }
  ADD_FAILURE() << "no score came";
  return {};
}

TEST(Scorer, ScoresACopyAndSkipsWhatComesMeanwhile) {
  HeldWorkload workload;
  Scorer scorer(workload, 7);
  std::vector<float> shared{1.5F};
  scorer.offer(10, shared);
  shared[0] = 2.5F;  // training goes on
  scorer.offer(20, shared);
  EXPECT_FALSE(scorer.take());
  workload.released.count_down();
  const Score first = next_score(scorer);
  EXPECT_EQ(first.step, 10U);
  EXPECT_EQ(first.evaluation.loss, 1.5);
  EXPECT_EQ(first.evaluation.samples, 7U);
  scorer.offer(30, shared);
  const Score second = next_score(scorer);
  EXPECT_EQ(second.step, 30U) << "the copy of step 20 was skipped";
  EXPECT_EQ(second.evaluation.loss, 2.5);
}

TEST(Scorer, YieldsToTraining) {
  const int before = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  HeldWorkload workload;
  workload.released.count_down();
  Scorer scorer(workload, 7);
  scorer.offer(10, std::vector<float>{1});
  (void)next_score(scorer);
  EXPECT_EQ(workload.niceness, 19);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())), before);
}

}  // namespace
}  // namespace longhaul
