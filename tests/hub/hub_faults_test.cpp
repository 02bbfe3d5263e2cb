#include <gtest/gtest.h>

#include "tests/hub/hub_run.h"
#include "tests/hub/switchboard.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using testing::HubRunOptions;
using testing::soon;
using testing::TestReplica;

class HubFaults : public ::testing::Test {
 protected:
  void start(HubRunOptions options) {
    options_ = std::move(options);
    hub_ = make_hub();
    for (std::size_t i = 0; i < options_.replicas; ++i) add(i);
  }
  std::unique_ptr<Hub> make_hub() {
    return Hub::start(testing::hub_options_of(options_), clock_, Log(LogLevel::kOff)).value();
  }
  void add(std::size_t slot) {
    replicas_.resize(std::max(replicas_.size(), slot + 1));
    replicas_[slot] = std::make_unique<TestReplica>(options_, slot, hub_->acceptor());
  }
  bool reaches(std::uint64_t round) {
    return soon([&] { return hub_->status().next_round >= round; });
  }
  // All that are left end together, with one model.
  void expect_one_model() {
    for (const auto& replica : replicas_) {
      if (replica) replica->wait();
    }
    std::optional<std::uint64_t> digest;
    for (const auto& replica : replicas_) {
      if (!replica) continue;
      ASSERT_FALSE(replica->failure()) << replica->failure()->message;
      EXPECT_EQ(replica->engine().steps_done(), options_.steps);
      if (!digest) digest = replica->digest();
      EXPECT_EQ(replica->digest(), *digest);
    }
    EXPECT_EQ(hub_->status().mismatches, 0U);
  }

  HubRunOptions options_;
  Clock clock_;
  std::unique_ptr<Hub> hub_;
  std::vector<std::unique_ptr<TestReplica>> replicas_;
};

TEST_F(HubFaults, ABrokenConnectionIsMadeAgainAndNothingIsLost) {
  start({.steps = 4000});
  ASSERT_TRUE(reaches(50));
  replicas_[1]->network.drop_all();
  ASSERT_TRUE(soon([&] { return replicas_[1]->reconnections() > 0; }));
  expect_one_model();
}

TEST_F(HubFaults, RoundsCloseWithoutAReplicaThatDies) {
  start({.steps = 4000});
  ASSERT_TRUE(reaches(50));
  replicas_[2].reset();
  expect_one_model();
}

TEST_F(HubFaults, ASilentLinkIsNoticedAndTheReplicaCatchesUp) {
  start({.steps = 6000, .journal = {.rounds = 6000}});
  ASSERT_TRUE(reaches(50));
  replicas_[0]->network.cut();
  ASSERT_TRUE(soon([&] { return !hub_->status().replicas.at("replica-0").is_connected; }));
  const std::uint64_t without = hub_->status().next_round;
  ASSERT_TRUE(reaches(without + 20));
  replicas_[0]->network.restore();
  ASSERT_TRUE(soon([&] { return hub_->status().replicas.at("replica-0").is_enrolled; }));
  expect_one_model();
  EXPECT_GT(replicas_[0]->sat_out(), 0U);
}

TEST_F(HubFaults, AReplicaThatStartsAnewGetsTheHubsState) {
  start({.steps = 6000, .journal = {.rounds = 20}});
  ASSERT_TRUE(reaches(100));
  replicas_[1].reset();
  const std::uint64_t without = hub_->status().next_round;
  ASSERT_TRUE(reaches(without + 50));
  add(1);
  expect_one_model();
  EXPECT_GT(replicas_[1]->steps(), 0U);
}

// Were it stopped before its first step, its checkpoint would be of a plan that nobody has.
TEST_F(HubFaults, AReplicaThatComesLateHasTheHubsStateOnceItHasStarted) {
  start({.steps = 6000});
  ASSERT_TRUE(reaches(100));
  replicas_[1].reset();
  HubRunOptions only_starts = options_;
  only_starts.steps = 0;
  TestReplica late(only_starts, 1, hub_->acceptor());
  late.wait();
  ASSERT_FALSE(late.failure()) << late.failure()->message;
  EXPECT_GE(late.engine().steps_done(), 100U);
}

// It has done all its steps, and what it waits for is no longer at hand.
TEST_F(HubFaults, AStateThatIsGivenAfterTheLastStepIsTakenToo) {
  options_ = {.recipe = "dd-ef-sgd",
              .delay_steps = 12,
              .replicas = 2,
              .elements = 64,
              .steps = 40,
              .lr = 0.002,
              .journal = {.rounds = 2},
              .step_time = Seconds(0.001)};
  hub_ = make_hub();
  add(0);
  options_.step_time = Seconds(0.05);
  add(1);
  ASSERT_TRUE(soon([&] { return replicas_[0]->steps() == options_.steps; }));
  replicas_[0]->network.cut();
  ASSERT_TRUE(reaches(options_.steps - 2));
  replicas_[0]->network.restore();
  expect_one_model();
  EXPECT_TRUE(replicas_[0]->replaced());
}

TEST_F(HubFaults, OneWhoComesAfterTheEndEndsWhereTheOthersDid) {
  start({.steps = 4000, .journal = {.rounds = 20}});
  ASSERT_TRUE(reaches(50));
  replicas_[1].reset();
  replicas_[0]->wait();
  replicas_[2]->wait();
  add(1);
  expect_one_model();
  EXPECT_TRUE(replicas_[1]->replaced());
}

TEST_F(HubFaults, AHubThatIsKilledGoesOnFromItsJournal) {
  const std::filesystem::path directory = testing::test_directory();
  for (const char* recipe : {"static", "dd-ef-sgd", "auto"}) {
    options_ = {
        .recipe = recipe, .steps = 1500, .directory = directory, .journal = {.log_rounds = 40}};
    testing::Switchboard board;
    hub_ = make_hub();
    board.connect(hub_.get());
    std::vector<std::unique_ptr<TestReplica>> replicas;
    for (std::size_t i = 0; i < options_.replicas; ++i)
      replicas.push_back(std::make_unique<TestReplica>(options_, i, board.acceptor()));
    for (const std::uint64_t round : {30U, 100U, 500U}) {
      ASSERT_TRUE(reaches(round));
      board.connect(nullptr);
      hub_.reset();
      hub_ = make_hub();
      board.connect(hub_.get());
    }
    replicas_ = std::move(replicas);
    expect_one_model();
    replicas_.clear();
    hub_.reset();
    std::filesystem::remove_all(directory);
  }
}

}  // namespace
}  // namespace longhaul
