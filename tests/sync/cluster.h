// Several engines on one simulated network, with an account of everything that was sent and merged.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/simulated.h"
#include "longhaul/sync/engine.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::testing {

// Passes everything on and adds up, in double, what went through.
class AccountingExchange final : public Exchange {
 public:
  // `part_of`: the part of that number that the engine has now.
  AccountingExchange(Exchange& inner, std::size_t elements,
                     std::function<Part(std::uint32_t)> part_of)
      : inner_(inner), merged_(elements), part_of_(std::move(part_of)) {}

  void submit(Update update) override {
    std::vector<float> sent(merged_.size());
    const std::span<float> part = part_of_(update.round.part).of(std::span(sent));
    if (!update.payload.empty()) add(update.payload.view(), 1.0F, part);
    in_flight_[update.round] = std::move(sent);
    inner_.submit(std::move(update));
  }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    Result<Mean> mean = inner_.collect(round, deadline);
    if (!mean.ok()) return mean;
    const Part part = part_of_(round.part);
    const std::vector<float> values = mean->to_vector();
    LONGHAUL_CHECK_EQ(values.size(), part.count);
    for (std::size_t i = 0; i < part.count; ++i)
      merged_[part.first + i] += static_cast<double>(values[i]);
    in_flight_.erase(round);
    ++rounds_merged_;
    return mean;
  }
  [[nodiscard]] std::size_t rounds_merged() const { return rounds_merged_; }
  [[nodiscard]] const std::vector<double>& merged() const { return merged_; }
  [[nodiscard]] const std::map<RoundId, std::vector<float>>& in_flight() const {
    return in_flight_;
  }

 private:
  Exchange& inner_;
  std::vector<double> merged_;
  std::function<Part(std::uint32_t)> part_of_;
  // Own updates whose mean has not been merged; zero outside their part.
  std::map<RoundId, std::vector<float>> in_flight_;
  std::size_t rounds_merged_ = 0;
};

// Keeps some updates out of the mean, and hands them back with it, as a hub does to which they came
// too late.
class ReturningExchange final : public Exchange {
 public:
  explicit ReturningExchange(Exchange& inner) : inner_(inner) {}

  void submit(Update update) override {
    if (returns && returns(update.round))
      returned_[update.round] = std::exchange(update.payload, {});
    inner_.submit(std::move(update));
  }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    if (stalls_at && round == *stalls_at) return Error{ErrorCode::kDeadline, "not yet"};
    Result<Mean> mean = inner_.collect(round, deadline);
    if (collected && mean.ok()) collected(*mean);
    if (own_ratio && mean.ok() && mean->next_plan) mean->next_plan->keep_ratio = *own_ratio;
    const auto found = returned_.find(round);
    if (!mean.ok() || found == returned_.end()) return mean;
    if (!loses_them) mean->returned = found->second;
    returned_.erase(found);
    return mean;
  }

  std::function<bool(RoundId)> returns;
  std::function<void(const Mean&)> collected;  // is told of every mean
  bool loses_them = false;
  std::optional<double> own_ratio;   // in every plan that this replica is told
  std::optional<RoundId> stalls_at;  // the mean of it does not come

 private:
  Exchange& inner_;
  std::map<RoundId, CheckedPayload> returned_;
};

struct ClusterReplica {
  std::unique_ptr<Learner> learner;
  std::unique_ptr<ReturningExchange> returning;
  std::unique_ptr<AccountingExchange> exchange;
  std::unique_ptr<Engine> engine;
  // Sum of all that the engine was to send: gradients after clipping, or what local steps moved.
  std::vector<double> updates;
  std::vector<double> leaked;  // what residuals lost by decay
  float weight = 1.0F;
};

inline LinkModel test_link(double bytes_per_second = 1e6, Seconds latency = Seconds(0.05)) {
  const RateTrace rate = RateTrace::constant({.bytes_per_second = bytes_per_second});
  return {.up = rate, .down = rate, .latency = latency};
}

class Cluster {
 public:
  Cluster(const EngineOptions& options, Workload& workload, const std::vector<float>& weights)
      : options_(options), workload_(workload), network_(peers(weights), workers_) {
    network_.plan_with([this](const ClosedRound&) { return std::exchange(next_plan_, {}); });
    const std::size_t elements = workload.initial_parameters().size();
    if (options.recipe.is_two_way)
      network_.compress_means(make_mean_compressor(options, elements, workers_));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ClusterReplica replica{.learner = workload.make_learner(i),
                             .returning = std::make_unique<ReturningExchange>(network_.exchange(i)),
                             .updates = std::vector<double>(elements),
                             .leaked = std::vector<double>(elements),
                             .weight = weights[i]};
      replica.exchange = std::make_unique<AccountingExchange>(
          *replica.returning, elements,
          [this, i](std::uint32_t part) { return replicas[i].engine->part(part); });
      replicas.push_back(std::move(replica));
      renew(i);
    }
  }

  void step() {
    submit_all();
    merge_all();
  }

  // The first half of a step; a replica that is idle has no gradient.
  void submit_all(const std::function<bool(std::size_t)>& is_idle = {}) {
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      ClusterReplica& replica = replicas[i];
      network_.advance(i, Seconds(0.01));
      if (is_idle && is_idle(i)) {
        replica.engine->submit_nothing();
        continue;
      }
      replica.learner->compute_gradient();
      const std::span<const float> at = replica.learner->parameters();
      const std::vector<float> before(at.begin(), at.end());
      const bool has_round = replica.engine->next_round() == replica.engine->steps_done();
      if (submit_with) {
        submit_with(i, replica.learner->gradient());
      } else {
        replica.engine->submit(replica.learner->gradient());
      }
      const bool has_stepped = !std::ranges::equal(before, at);
      for (std::size_t j = 0; j < before.size(); ++j) {
        replica.updates[j] += has_stepped ? static_cast<double>(before[j] - at[j])
                                          : static_cast<double>(replica.learner->gradient()[j]);
      }
      if (has_round) note_decay(replica);
    }
  }

  void settle() { LONGHAUL_CHECK(network_.settle().ok()); }

  void merge_all() {
    settle();
    for (ClusterReplica& replica : replicas) LONGHAUL_CHECK(replica.engine->end_step().ok());
  }

  // A fresh engine at the initial parameters takes the place of a replica's.
  Engine& renew(std::size_t index) {
    ClusterReplica& replica = replicas.at(index);
    EngineOptions options = options_;
    options.slot = index;
    options.recipe.plan.keep_ratio =
        replica.returning->own_ratio.value_or(options_.recipe.plan.keep_ratio);
    std::ranges::copy(workload_.initial_parameters(), replica.learner->parameters().begin());
    replica.engine = std::make_unique<Engine>(options, replica.learner->parameters(),
                                              *replica.exchange, workers_);
    return *replica.engine;
  }

  // From the start on: before the first step.
  void set_ratio(std::size_t index, double keep_ratio) {
    replicas.at(index).returning->own_ratio = keep_ratio;
    renew(index);
  }

  [[nodiscard]] std::span<const float> residual_of_means() const {
    return network_.mean_compressor()->residual();
  }

  // With the mean of the next round.
  void announce(const Plan& plan) { next_plan_ = plan; }

  std::vector<ClusterReplica> replicas;
  // In place of Engine::submit().
  std::function<void(std::size_t replica, std::span<float> gradient)> submit_with;

 private:
  // What is left of a residual tells what it was. A late replica moves back by what it lost, which
  // is no update.
  void note_decay(ClusterReplica& replica) const {
    const double share = 1 / static_cast<double>(options_.recipe.residual_decay) - 1;
    const std::vector<float> residual = replica.engine->residual();
    for (std::size_t j = 0; j < replica.leaked.size(); ++j) {
      const double lost = share * static_cast<double>(residual[j]);
      replica.leaked[j] += lost;
      if (replica.engine->plan().merge == Merge::kLate) replica.updates[j] += lost;
    }
  }
  static std::vector<SimulatedPeer> peers(const std::vector<float>& weights) {
    std::vector<SimulatedPeer> all;
    for (const float weight : weights) all.push_back({.link = test_link(), .weight = weight});
    return all;
  }
  EngineOptions options_;
  Workload& workload_;
  Workers workers_{1};
  SimulatedNetwork network_;
  std::optional<Plan> next_plan_;
};

inline EngineOptions setup_of(Merge merge, const char* codec, Plan plan) {
  EngineOptions options;
  options.recipe = {.name = "test", .codec = parse_codec(codec).value(), .plan = plan};
  options.recipe.plan.merge = merge;
  options.lr.peak = 0.02;
  return options;
}

// How many rounds a replica has merged after that many steps of an unchanging plan.
inline std::size_t rounds_merged_after(int steps, const Plan& plan) {
  return static_cast<std::size_t>(std::max(0, steps - plan.delay_steps) / plan.period_steps);
}

// Local steps of plain SGD.
inline EngineOptions local_options(const char* codec, const Plan& plan) {
  EngineOptions options = setup_of(Merge::kLate, codec, plan);
  options.optimizer.kind = OptimizerKind::kSgd;
  return options;
}

inline std::string test_name_of(Merge merge) {
  std::string name(name_of(merge));
  std::ranges::replace(name, '-', '_');
  return name;
}

// Both sides of: Σ weighted updates = Σ merged means × total weight + residuals + in flight + what
// residuals lost by decay.
struct Account {
  std::vector<double> updates;
  std::vector<double> accounted;
  double scale = 0;  // Σ|update|
};

inline Account account_of(const Cluster& cluster) {
  const std::size_t elements = cluster.replicas[0].updates.size();
  Account account{.updates = std::vector<double>(elements),
                  .accounted = std::vector<double>(elements)};
  double total_weight = 0;
  for (const ClusterReplica& replica : cluster.replicas)
    total_weight += static_cast<double>(replica.weight);
  std::vector<std::vector<float>> residuals;
  for (const ClusterReplica& replica : cluster.replicas)
    residuals.push_back(replica.engine->residual());
  for (std::size_t j = 0; j < elements; ++j) {
    account.accounted[j] = cluster.replicas[0].exchange->merged()[j] * total_weight;
    for (std::size_t i = 0; i < cluster.replicas.size(); ++i) {
      const ClusterReplica& replica = cluster.replicas[i];
      const auto weight = static_cast<double>(replica.weight);
      account.updates[j] += weight * replica.updates[j];
      account.accounted[j] += weight * static_cast<double>(residuals[i][j]);
      account.accounted[j] += weight * replica.leaked[j];
      for (const auto& [round, sent] : replica.exchange->in_flight()) {
        account.accounted[j] += weight * static_cast<double>(sent[j]);
      }
    }
    account.scale += std::abs(account.updates[j]);
  }
  return account;
}

inline double imbalance(const Account& account) {
  double off = 0;
  for (std::size_t j = 0; j < account.updates.size(); ++j)
    off += std::abs(account.updates[j] - account.accounted[j]);
  return off / account.scale;
}

// Both clusters are in the same state, to the bit.
inline void expect_same_replicas(const Cluster& one, const Cluster& other) {
  for (std::size_t i = 0; i < one.replicas.size(); ++i) {
    const Engine& a = *one.replicas[i].engine;
    const Engine& b = *other.replicas[i].engine;
    ASSERT_EQ(digest_of(one.replicas[i].learner->parameters()),
              digest_of(other.replicas[i].learner->parameters()));
    ASSERT_EQ(digest_of(a.shared()), digest_of(b.shared()));
    ASSERT_EQ(digest_of(a.residual()), digest_of(b.residual()));
    ASSERT_EQ(a.plan(), b.plan());
    ASSERT_EQ(a.steps_done(), b.steps_done());
    ASSERT_EQ(a.in_flight(), b.in_flight());
    ASSERT_EQ(a.non_finite_steps(), b.non_finite_steps());
  }
}

}  // namespace longhaul::testing
