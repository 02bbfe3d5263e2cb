// A hub and its replicas, and the faults of a long run: links that break or fall silent, replicas
// and hubs that are killed and come back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/hub/hub_run.h"
#include "tests/hub/switchboard.h"

namespace longhaul::testing {

class FaultRun {
 public:
  FaultRun(HubRunOptions setup, std::uint64_t seed) : setup_(std::move(setup)), random_(seed) {
    std::filesystem::remove_all(setup_.directory);
    start_hub();
    for (std::size_t slot = 0; slot < setup_.replicas; ++slot) start(slot);
  }
  ~FaultRun() {
    replicas_.clear();
    board_.connect(nullptr);
    hub_.reset();
    std::filesystem::remove_all(setup_.directory);
  }
  FaultRun(const FaultRun&) = delete;
  FaultRun& operator=(const FaultRun&) = delete;

  // One more fault, of any kind, and a while until the next: often so short that what the first one
  // broke is not repaired yet. Replicas are killed only if they may.
  void fault(bool may_kill_replicas) {
    const std::size_t slot = random_() % setup_.replicas;
    switch (random_() % (may_kill_replicas ? 10 : 7)) {
      case 0:
      case 1:
        cut_or_restore(slot);
        break;
      case 2:
        restart_hub();
        break;
      case 3:
        break_all();
        break;
      case 4:
      case 5:
      case 6:
        if (replicas_[slot]) replicas_[slot]->network.drop_all();
        break;
      default:
        kill_or_start(slot);
    }
    const double most_ms = random_() % 2 == 0 ? 4 : 60;
    wait(Seconds(1e-3 * std::uniform_real_distribution<>(0, most_ms)(random_)));
  }
  void cut_or_restore(std::size_t slot) {
    if (!replicas_[slot]) return start(slot);
    is_cut_[slot] = !is_cut_[slot];
    is_cut_[slot] ? replicas_[slot]->network.cut() : replicas_[slot]->network.restore();
  }
  void kill_or_start(std::size_t slot) {
    if (!replicas_[slot]) return start(slot);
    replicas_[slot]->stop();
    if (replicas_[slot]->has_ended()) return;
    if (setup_.save_every > 0 && replicas_[slot]->saved()) saved_[slot] = replicas_[slot]->saved();
    replicas_[slot].reset();
  }
  void break_all() {
    for (const auto& replica : replicas_) {
      if (replica) replica->network.drop_all();
    }
  }
  void restart_hub() {
    board_.connect(nullptr);
    mismatches_ += hub_->status().mismatches;
    hub_.reset();
    start_hub();
  }

  [[nodiscard]] bool reaches(std::uint64_t round) {
    return soon([&] { return hub_->status().next_round >= round; });
  }
  // Of a run that is open-ended: everyone is here again, and the run ends a while later.
  [[nodiscard]] bool finishes() {
    bring_back_all();
    const bool is_back = soon([&] {
      const HubStatus status = hub_->status();
      return std::ranges::count_if(status.replicas, [](const auto& replica) {
               return replica.second.is_enrolled;
             }) == static_cast<std::ptrdiff_t>(setup_.replicas);
    });
    const bool goes_on = reaches(hub_->status().next_round + kLastSteps);
    hub_->finish(v1::CAUSE_STEPS);
    return is_back && goes_on && has_ended();
  }
  // Of a run with a last step, without further faults.
  [[nodiscard]] bool ends() {
    bring_back_all();
    return has_ended();
  }
  // Of a run with a last step: faults go on beyond it, then everyone comes for what is left.
  [[nodiscard]] bool finishes_among_faults() {
    const auto is_running = [](const auto& replica) { return !replica || !replica->has_ended(); };
    for (int i = 0; i < kMostFaults && std::ranges::any_of(replicas_, is_running); ++i) fault(true);
    bring_back_all();
    return has_ended();
  }

  // All end at the same step, with one model.
  void expect_one_model() {
    for (const auto& replica : replicas_) {
      ASSERT_FALSE(replica->failure()) << replica->failure()->message;
      EXPECT_EQ(replica->engine().steps_done(), replicas_[0]->engine().steps_done());
      EXPECT_EQ(replica->digest(), replicas_[0]->digest());
    }
    EXPECT_EQ(mismatches_ + hub_->status().mismatches, 0U);
  }
  // Which is better than the first one.
  void expect_one_good_model() {
    expect_one_model();
    QuadraticWorkload workload(setup_.elements);
    const double first = workload.evaluate(workload.initial_parameters(), 1).loss;
    EXPECT_LT(workload.evaluate(replicas_[0]->engine().shared(), 1).loss, first / 4);
  }

  void wait(Seconds how_long) { pacer_.wait_until(deadline_after(how_long)); }
  [[nodiscard]] const TestReplica& replica(std::size_t slot) const { return *replicas_[slot]; }
  [[nodiscard]] TestReplica& replica(std::size_t slot) { return *replicas_[slot]; }
  [[nodiscard]] HubStatus status() const { return hub_->status(); }

 private:
  static constexpr std::uint64_t kLastSteps = 600;
  static constexpr int kMostFaults = 500;

  void bring_back_all() {
    for (std::size_t slot = 0; slot < setup_.replicas; ++slot) {
      if (!replicas_[slot]) start(slot);
      if (is_cut_[slot]) cut_or_restore(slot);
    }
  }
  // Means are sent before those who watch are told: the books are complete once the hub says so.
  [[nodiscard]] bool has_ended() {
    for (const auto& replica : replicas_) replica->wait();
    return soon([&] { return hub_->status().is_finished; });
  }
  void start_hub() {
    HubOptions options = hub_options_of(setup_);
    if (setup_.ledger != nullptr)
      options.watcher = [ledger = setup_.ledger](const RoundNews& news) {
        ledger->closed(news.outcome);
      };
    hub_ = Hub::start(std::move(options), clock_, Log(LogLevel::kOff)).value();
    board_.connect(hub_.get());
  }
  void start(std::size_t slot) {
    is_cut_.resize(setup_.replicas);
    replicas_.resize(setup_.replicas);
    is_cut_[slot] = false;
    saved_.resize(setup_.replicas);
    replicas_[slot] = std::make_unique<TestReplica>(setup_, slot, board_.acceptor(), saved_[slot]);
  }

  HubRunOptions setup_;
  std::mt19937_64 random_;
  Clock clock_;
  Pacer pacer_;
  Switchboard board_;
  std::unique_ptr<Hub> hub_;
  std::vector<std::unique_ptr<TestReplica>> replicas_;
  std::vector<std::optional<Saved>> saved_;  // of those that were killed
  std::vector<bool> is_cut_;
  std::uint64_t mismatches_ = 0;
};

}  // namespace longhaul::testing
