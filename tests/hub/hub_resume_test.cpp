// Replicas that are stopped or killed and come back with a checkpoint: what they do again is what
// they did.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/hub/hub_run.h"
#include "tests/hub/switchboard.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using testing::HubRunOptions;
using testing::Ledger;
using testing::Saved;
using testing::soon;
using testing::TestReplica;

constexpr std::uint64_t kSteps = 400;

class ResumeRun {
 public:
  explicit ResumeRun(HubRunOptions setup) : setup_(std::move(setup)) {
    start_hub();
    for (std::size_t slot = 0; slot < setup_.replicas; ++slot)
      replicas_.push_back(std::make_unique<TestReplica>(setup_, slot, board_.acceptor()));
  }
  ~ResumeRun() {
    replicas_.clear();
    board_.connect(nullptr);
  }
  ResumeRun(const ResumeRun&) = delete;
  ResumeRun& operator=(const ResumeRun&) = delete;

  [[nodiscard]] bool reaches(std::uint64_t round) {
    return soon([&] { return hub_->status().next_round >= round; });
  }
  // Replicas are done with so many steps.
  [[nodiscard]] bool everyone_has_done(std::uint64_t steps) {
    return soon([&] {
      return std::ranges::all_of(replicas_, [&](const auto& r) { return r->steps() >= steps; });
    });
  }
  // Nobody hears of what it still does.
  void cut_off(std::size_t slot) { replicas_[slot]->network.cut(); }
  void break_connection(std::size_t slot) { replicas_[slot]->network.drop_all(); }
  // What it did after its checkpoint is forgotten.
  [[nodiscard]] Saved kill(std::size_t slot) {
    replicas_[slot]->stop();
    Saved saved = replicas_[slot]->saved().value();
    // As it comes from a file.
    saved.state = state_from_bytes(to_bytes(saved.state)).value();
    replicas_[slot].reset();
    return saved;
  }
  void come_back(std::size_t slot, Saved saved) {
    replicas_[slot] =
        std::make_unique<TestReplica>(setup_, slot, board_.acceptor(), std::move(saved));
  }
  void kill_and_resume_all(const std::function<void()>& between) {
    std::vector<Saved> saved;
    for (std::size_t slot = 0; slot < setup_.replicas; ++slot) saved.push_back(kill(slot));
    between();
    for (std::size_t slot = 0; slot < setup_.replicas; ++slot)
      come_back(slot, std::move(saved[slot]));
  }
  void restart_hub() {
    board_.connect(nullptr);
    hub_.reset();
    start_hub();
  }
  // The digest with which all end.
  [[nodiscard]] std::uint64_t end() {
    for (const auto& replica : replicas_) {
      replica->wait();
      EXPECT_FALSE(replica->failure()) << replica->failure()->message;
      EXPECT_EQ(replica->engine().steps_done(), kSteps);
      EXPECT_EQ(replica->digest(), replicas_[0]->digest());
    }
    EXPECT_EQ(hub_->status().mismatches, 0U);
    return replicas_[0]->digest();
  }
  [[nodiscard]] const TestReplica& replica(std::size_t slot) const { return *replicas_[slot]; }
  [[nodiscard]] HubStatus status() const { return hub_->status(); }

 private:
  void start_hub() {
    HubOptions options = testing::hub_options_of(setup_);
    if (setup_.ledger != nullptr)
      options.watcher = [ledger = setup_.ledger](const RoundNews& news) {
        ledger->closed(news.outcome);
      };
    hub_ = Hub::start(std::move(options), clock_, Log(LogLevel::kOff)).value();
    board_.connect(hub_.get());
  }

  HubRunOptions setup_;
  Clock clock_;
  testing::Switchboard board_;
  std::unique_ptr<Hub> hub_;
  std::vector<std::unique_ptr<TestReplica>> replicas_;
};

HubRunOptions full_rounds(const std::string& recipe) {
  return {.recipe = recipe, .steps = kSteps, .policy = {.least = 3}, .step_time = Seconds(0.0005)};
}

class HubResume : public ::testing::TestWithParam<std::string> {
 protected:
  std::uint64_t whole() const { return ResumeRun(full_rounds(GetParam())).end(); }
};

TEST_P(HubResume, StoppedAndResumedIsAsIfItHadNeverStopped) {
  ResumeRun run(full_rounds(GetParam()));
  ASSERT_TRUE(run.everyone_has_done(60));
  run.kill_and_resume_all([] {});
  ASSERT_TRUE(run.everyone_has_done(120));
  run.kill_and_resume_all([] {});
  EXPECT_EQ(run.end(), whole());
}

// Everyone does again what came after the checkpoint, and all of it is in already.
TEST_P(HubResume, KilledLongAfterTheCheckpointIsAsIfItHadNeverStopped) {
  HubRunOptions setup = full_rounds(GetParam());
  setup.save_after = 50;
  ResumeRun run(setup);
  ASSERT_TRUE(run.everyone_has_done(90));
  run.kill_and_resume_all([] {});
  EXPECT_EQ(run.end(), whole());
  for (std::size_t slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(run.replica(slot).differing(), 0U);
    EXPECT_EQ(run.replica(slot).sat_out(), 0U);
    EXPECT_FALSE(run.replica(slot).replaced());
  }
}

TEST_P(HubResume, TheHubMayBeKilledToo) {
  HubRunOptions setup = full_rounds(GetParam());
  setup.save_after = 50;
  setup.directory = testing::test_directory();
  {
    ResumeRun run(setup);
    ASSERT_TRUE(run.everyone_has_done(90));
    run.kill_and_resume_all([&] { run.restart_hub(); });
    EXPECT_EQ(run.end(), whole());
  }
  std::filesystem::remove_all(setup.directory);
}

INSTANTIATE_TEST_SUITE_P(Recipes, HubResume,
                         ::testing::Values("d-sgd", "static", "dd-ef-sgd", "dga", "cocktail",
                                           "olco3-oc", "olco3-tc", "olco3-vq", "overlap-local-sgd",
                                           "streaming-diloco", "sparseloco", "olco3-oc:5:4",
                                           "uneven-late", "streaming-diloco:7:6", "wfbp",
                                           "plsgd-enp"),
                         [](const auto& test) { return testing::name_of_test(test.param); });

// One is killed, the others go on; it comes back with its books in order, also when a planner moves
// the plan.
class HubResumeOne : public ::testing::TestWithParam<std::string> {
 protected:
  HubRunOptions setup() {
    HubRunOptions setup = full_rounds(GetParam());
    setup.elements = kFew;
    setup.lr = 0.002;
    setup.policy = {};
    setup.ledger = &ledger_;
    setup.may_look_ahead = false;
    setup.save_after = 50;
    return setup;
  }
  void expect_books_in_order(const ResumeRun& run) const {
    EXPECT_FALSE(run.replica(1).replaced());
    testing::expect_books_in_order(run, ledger_);
  }

  static constexpr std::size_t kFew = 64;
  Ledger ledger_{kFew, testing::parts_of(GetParam(), kFew)};
};

TEST_P(HubResumeOne, NothingIsLostAndNothingCountsTwice) {
  ResumeRun run(setup());
  ASSERT_TRUE(run.everyone_has_done(90));
  run.cut_off(1);
  Saved saved = run.kill(1);
  ASSERT_TRUE(run.reaches(run.status().next_round + 20));
  run.come_back(1, std::move(saved));
  (void)run.end();
  EXPECT_GT(run.replica(1).sat_out(), 0U);
  expect_books_in_order(run);
}

// It has all means by then, so the hub has nothing new to say of what is in of it.
TEST_P(HubResumeOne, ABrokenConnectionWhileItDoesStepsAgainChangesNothing) {
  HubRunOptions slow = setup();
  slow.step_time = Seconds(0.003);
  slow.save_after = 50;
  ResumeRun run(slow);
  ASSERT_TRUE(run.everyone_has_done(130));
  run.cut_off(1);
  Saved saved = run.kill(1);
  ASSERT_TRUE(run.reaches(150));
  run.come_back(1, std::move(saved));
  ASSERT_TRUE(soon([&] { return run.replica(1).steps() >= 70; }));
  run.break_connection(1);
  (void)run.end();
  EXPECT_GT(run.replica(1).reconnections(), 0U);
  expect_books_in_order(run);
}

// Updates that come too late are in no mean, but in what the replica sends after them.
TEST_P(HubResumeOne, WhatCameTooLateIsDoneAgainToo) {
  HubRunOptions hasty = setup();
  hasty.policy = {.quorum = 0.3};
  ResumeRun run(hasty);
  ASSERT_TRUE(run.everyone_has_done(150));
  const std::size_t returned = ledger_.returned();
  run.come_back(1, run.kill(1));
  (void)run.end();
  EXPECT_GT(returned, 0U);
  expect_books_in_order(run);
}

INSTANTIATE_TEST_SUITE_P(Recipes, HubResumeOne,
                         ::testing::Values("dd-ef-sgd", "deco", "deco-late", "auto", "olco3-oc",
                                           "olco3-oc:5:4", "uneven-late", "olco3-oc:3:1",
                                           "dreamddp", "dreamddp-late"),
                         [](const auto& test) { return testing::name_of_test(test.param); });

// How much work a replica does in a step is its own affair: steps and rounds are counted alike.
class HubPasses : public ::testing::TestWithParam<std::string> {};

TEST_P(HubPasses, OfUnequalNumberShareTheirSteps) {
  constexpr std::size_t kFew = 64;
  Ledger ledger(kFew, testing::parts_of(GetParam(), kFew));
  HubRunOptions setup = full_rounds(GetParam());
  setup.elements = kFew;
  setup.has_unequal_passes = true;
  const std::uint64_t whole = ResumeRun(setup).end();
  setup.ledger = &ledger;
  setup.save_after = 50;
  ResumeRun run(setup);
  ASSERT_TRUE(run.everyone_has_done(90));
  // The hub tells how it stands a few times a second.
  EXPECT_TRUE(soon([&] {
    const std::map<std::string, ReplicaStatus> replicas = run.status().replicas;
    return replicas.size() == 3 && replicas.at("replica-0").passes == 1 &&
           replicas.at("replica-1").passes == 2 && replicas.at("replica-2").passes == 3;
  }));
  run.kill_and_resume_all([] {});
  EXPECT_EQ(run.end(), whole);
  testing::expect_books_in_order(run, ledger);
  setup = full_rounds(GetParam());
  setup.elements = kFew;
  EXPECT_NE(ResumeRun(setup).end(), whole) << "the passes made no difference";
}

INSTANTIATE_TEST_SUITE_P(Recipes, HubPasses,
                         ::testing::Values("static", "olco3-oc:5:4", "uneven-late"),
                         [](const auto& test) { return testing::name_of_test(test.param); });

TEST(HubResumePlan, GoesOnWithAPlannerThatChangesThePlan) {
  HubRunOptions setup = full_rounds("random-plan");
  setup.policy = {};
  setup.save_after = 50;
  ResumeRun run(setup);
  ASSERT_TRUE(run.everyone_has_done(90));
  Saved saved = run.kill(1);
  run.come_back(1, std::move(saved));
  (void)run.end();
  EXPECT_FALSE(run.replica(1).replaced());
}

// The hub has forgotten the rounds that it would need: it takes the hub's state, and says what was
// lost.
TEST(HubResumeLoss, TellsOfTheLossIfTheJournalDoesNotReachBack) {
  HubRunOptions setup = full_rounds("dd-ef-sgd");
  setup.policy = {};
  setup.journal = {.rounds = 10};
  setup.save_after = 50;
  ResumeRun run(setup);
  ASSERT_TRUE(run.everyone_has_done(100));
  Saved saved = run.kill(1);
  run.come_back(1, std::move(saved));
  (void)run.end();
  ASSERT_TRUE(run.replica(1).replaced());
  EXPECT_EQ(run.replica(1).replaced()->from_step, 50U);
  EXPECT_GT(run.replica(1).replaced()->to_step, 50U);
  EXPECT_GT(run.replica(1).replaced()->residual, 0);
}

}  // namespace
}  // namespace longhaul
