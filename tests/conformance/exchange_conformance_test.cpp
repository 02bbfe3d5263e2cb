// The contract of Exchange and Membership, kept by every way to connect replicas: over a hub, on
// the network of the lab, and as a collective without a hub.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/exchange/hub_client.h"
#include "longhaul/hub/hub.h"
#include "longhaul/lab/seat.h"
#include "longhaul/sync/replica.h"
#include "longhaul/transport/local.h"
#include "tests/codec/checked.h"
#include "tests/sync/quadratic_workload.h"
#include "tests/trainer/threads_gather.h"
#include "trainer/collective.h"

namespace longhaul {
namespace {

constexpr std::size_t kPeerElements = 640;
constexpr std::uint64_t kPeerSteps = 12;
const std::vector<float> kPeerWeights{1.0F, 2.5F, 0.5F};
const std::size_t kPeers = kPeerWeights.size();

Deadline soon_enough() { return deadline_after(Seconds(60)); }

EngineOptions options_of_peer(const Recipe& recipe, std::size_t slot) {
  return {.recipe = recipe,
          .optimizer = {.kind = OptimizerKind::kMomentum},
          .lr = {.peak = 0.02, .steps = kPeerSteps},
          .layers = testing::QuadraticWorkload(kPeerElements).layers(),
          .slot = slot,
          .replicas = kPeers};
}

RateTrace fast() { return RateTrace::constant(Bandwidth::from_bits_per_second(1e9)); }

// Three replicas of one run, however they are connected.
class Peers {
 public:
  virtual ~Peers() = default;
  [[nodiscard]] virtual Exchange& exchange(std::size_t slot) = 0;
  [[nodiscard]] virtual Membership& membership(std::size_t slot) = 0;
  // All have submitted: brings about what threads do elsewhere.
  virtual void settle() {}
};

class HubPeers final : public Peers {
 public:
  explicit HubPeers(const Recipe& recipe) {
    hub_ = Hub::start({.training = {.engine = options_of_peer(recipe, 0),
                                    .steps = kPeerSteps,
                                    .replicas = kPeers},
                       .start_with = kPeers,
                       .weights = kPeerWeights},
                      clock_, Log(LogLevel::kOff))
               .value();
    const testing::QuadraticWorkload workload(kPeerElements);
    const std::span bytes = std::as_bytes(workload.initial_parameters());
    for (std::size_t slot = 0; slot < kPeers; ++slot) {
      const std::string name = "peer-" + std::to_string(slot);
      networks_.push_back(std::make_unique<LocalNetwork>(hub_->acceptor(), name));
      clients_.push_back(std::make_unique<HubClient>(
          ClientOptions{.name = name,
                        .slot = slot,
                        .elements = kPeerElements,
                        .layers = workload.layers(),
                        .initial = std::make_shared<const ByteBuffer>(bytes.begin(), bytes.end())},
          *networks_.back(), clock_));
    }
  }
  [[nodiscard]] Exchange& exchange(std::size_t slot) override { return *clients_[slot]; }
  [[nodiscard]] Membership& membership(std::size_t slot) override { return *clients_[slot]; }

 private:
  Clock clock_;
  std::unique_ptr<Hub> hub_;
  std::vector<std::unique_ptr<LocalNetwork>> networks_;
  std::vector<std::unique_ptr<HubClient>> clients_;
};

class LabPeers final : public Peers {
 public:
  explicit LabPeers(const Recipe& recipe) {
    std::vector<SimulatedPeer> peers;
    for (const float weight : kPeerWeights)
      peers.push_back({.link = {.up = fast(), .down = fast()}, .weight = weight});
    network_ = std::make_unique<SimulatedNetwork>(peers, workers_);
    if (recipe.is_two_way)
      network_->compress_means(
          make_mean_compressor(options_of_peer(recipe, 0), kPeerElements, workers_));
    for (std::size_t slot = 0; slot < kPeers; ++slot)
      seats_.push_back(std::make_unique<lab::Seat>(options_of_peer(recipe, slot), Seconds(0.01),
                                                   kPeerSteps, workload_, *network_));
  }
  [[nodiscard]] Exchange& exchange(std::size_t slot) override { return network_->exchange(slot); }
  [[nodiscard]] Membership& membership(std::size_t slot) override { return *seats_[slot]; }
  void settle() override { EXPECT_TRUE(network_->settle().ok()); }

 private:
  Workers workers_{1};
  testing::QuadraticWorkload workload_{kPeerElements};
  std::unique_ptr<SimulatedNetwork> network_;
  std::vector<std::unique_ptr<lab::Seat>> seats_;
};

class CollectivePeers final : public Peers {
 public:
  explicit CollectivePeers(const Recipe& recipe) {
    for (std::size_t slot = 0; slot < kPeers; ++slot)
      ranks_.push_back(trainer::Collective::start({.engine = options_of_peer(recipe, slot),
                                                   .elements = kPeerElements,
                                                   .weights = kPeerWeights,
                                                   .steps = kPeerSteps},
                                                  gather_.of(slot), clock_)
                           .value());
  }
  // Else a rank waits for ever for the others.
  ~CollectivePeers() override { gather_.lose(0); }
  [[nodiscard]] Exchange& exchange(std::size_t slot) override { return *ranks_[slot]; }
  [[nodiscard]] Membership& membership(std::size_t slot) override { return *ranks_[slot]; }

 private:
  Clock clock_;
  testing::ThreadsGather gather_{kPeers};
  std::vector<std::unique_ptr<trainer::Collective>> ranks_;
};

using Connect = std::function<std::unique_ptr<Peers>(const Recipe&)>;

template <typename Kind>
std::unique_ptr<Peers> connected(const Recipe& recipe) {
  return std::make_unique<Kind>(recipe);
}

Recipe recipe_with_delay() {
  Recipe recipe = find_recipe("static").value();
  recipe.plan.delay_steps = 2;
  return recipe;
}

class ExchangeConformance : public ::testing::TestWithParam<std::pair<const char*, Connect>> {
 protected:
  void SetUp() override {
    peers_ = GetParam().second(recipe_with_delay());
    for (std::size_t slot = 0; slot < kPeers; ++slot)
      ASSERT_TRUE(peers_->membership(slot).first_plan(soon_enough()).value().has_value());
  }
  static CheckedPayload payload(std::size_t slot, std::uint64_t step) {
    std::vector<float> values(kPeerElements);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.1F * static_cast<float>(slot + 1) + 0.01F * static_cast<float>((i + step) % 7);
    return testing_data::dense(std::move(values));
  }
  void submit(std::size_t slot, std::uint64_t step, CheckedPayload payload) {
    (void)peers_->membership(slot).stance(step, {.step = step}, soon_enough());
    peers_->exchange(slot).submit(
        {.round = {.step = step}, .elements = kPeerElements, .payload = std::move(payload)});
  }
  void submit_all(std::uint64_t step) {
    for (std::size_t slot = 0; slot < kPeers; ++slot) submit(slot, step, payload(slot, step));
    peers_->settle();
  }
  std::vector<float> mean(std::size_t slot, std::uint64_t step) {
    const Result<Mean> mean = peers_->exchange(slot).collect({.step = step}, soon_enough());
    EXPECT_TRUE(mean.ok()) << mean.error().message;
    if (!mean.ok()) return {};
    EXPECT_TRUE(mean->returned.empty());
    return mean->to_vector();
  }
  // Weighted, in the order of the slots.
  static std::vector<float> expected_mean(const std::vector<CheckedPayload>& sent) {
    Workers alone{1};
    std::vector<WeightedPayload> weighted;
    for (std::size_t slot = 0; slot < kPeers; ++slot)
      weighted.push_back({.payload = sent[slot], .weight = kPeerWeights[slot]});
    const RoundMean mean = mean_of_round(weighted, kPeerElements, alone);
    return testing_data::values_of(mean.payload, kPeerElements);
  }
  static std::vector<CheckedPayload> all_payloads(std::uint64_t step) {
    std::vector<CheckedPayload> all;
    for (std::size_t slot = 0; slot < kPeers; ++slot) all.push_back(payload(slot, step));
    return all;
  }

  std::unique_ptr<Peers> peers_;
};

TEST_P(ExchangeConformance, EveryReplicaCollectsTheSameWeightedMean) {
  submit_all(0);
  const std::vector<float> expected = expected_mean(all_payloads(0));
  for (std::size_t slot = 0; slot < kPeers; ++slot) EXPECT_EQ(mean(slot, 0), expected) << slot;
}

TEST_P(ExchangeConformance, AReplicaThatSendsNothingCountsAsZero) {
  submit(0, 0, payload(0, 0));
  submit(1, 0, {});
  submit(2, 0, payload(2, 0));
  peers_->settle();
  const std::vector<float> expected = expected_mean({payload(0, 0), {}, payload(2, 0)});
  for (std::size_t slot = 0; slot < kPeers; ++slot) EXPECT_EQ(mean(slot, 0), expected) << slot;
}

TEST_P(ExchangeConformance, AMeanIsZeroIfNobodySendsAnything) {
  for (std::size_t slot = 0; slot < kPeers; ++slot) submit(slot, 0, {});
  peers_->settle();
  for (std::size_t slot = 0; slot < kPeers; ++slot)
    EXPECT_EQ(mean(slot, 0), std::vector<float>(kPeerElements)) << slot;
}

TEST_P(ExchangeConformance, SeveralRoundsMayBeOnTheirWay) {
  for (std::uint64_t step = 0; step < 3; ++step) submit_all(step);
  for (std::size_t slot = 0; slot < kPeers; ++slot)
    EXPECT_EQ(peers_->membership(slot).updates_in_flight(), 3U) << slot;
  for (std::uint64_t step = 0; step < 3; ++step)
    for (std::size_t slot = 0; slot < kPeers; ++slot)
      EXPECT_EQ(mean(slot, step), expected_mean(all_payloads(step))) << slot << ' ' << step;
  for (std::size_t slot = 0; slot < kPeers; ++slot)
    EXPECT_EQ(peers_->membership(slot).updates_in_flight(), 0U) << slot;
}

TEST_P(ExchangeConformance, AWaitEndsAtItsDeadlineAndLosesNothing) {
  submit(0, 0, payload(0, 0));
  submit(1, 0, payload(1, 0));
  peers_->settle();
  EXPECT_EQ(peers_->exchange(0).collect({.step = 0}, Deadline::min()).error().code,
            ErrorCode::kDeadline);
  submit(2, 0, payload(2, 0));
  peers_->settle();
  EXPECT_TRUE(peers_->membership(0).await({.step = 0}, soon_enough()).ok());
  EXPECT_EQ(mean(0, 0), expected_mean(all_payloads(0)));
}

TEST_P(ExchangeConformance, AMemberTakesPartUntilTheRunIsOver) {
  for (std::uint64_t step = 0; step < kPeerSteps; ++step) {
    for (std::size_t slot = 0; slot < kPeers; ++slot)
      EXPECT_EQ(peers_->membership(slot).stance(step, {.step = step}, soon_enough()).value(),
                Stance::kTakePart);
    submit_all(step);
    for (std::size_t slot = 0; slot < kPeers; ++slot) (void)mean(slot, step);
  }
  for (std::size_t slot = 0; slot < kPeers; ++slot)
    EXPECT_EQ(
        peers_->membership(slot).stance(kPeerSteps, {.step = kPeerSteps}, soon_enough()).value(),
        Stance::kFinish);
}

// A whole run with the loop that production has, for every recipe with a fixed plan.
std::vector<std::uint64_t> digests_of_run(const Connect& connect, const Recipe& recipe) {
  struct One {
    std::unique_ptr<Learner> learner;
    std::unique_ptr<Replica> replica;
  };
  const std::unique_ptr<Peers> peers = connect(recipe);
  const Clock clock;
  testing::QuadraticWorkload workload(kPeerElements);
  std::vector<Workers> workers(kPeers);
  std::vector<One> all(kPeers);
  for (std::size_t slot = 0; slot < kPeers; ++slot) {
    all[slot].learner = workload.make_learner(slot);
    all[slot].replica = std::make_unique<Replica>(
        Replica::Options{
            .engine = options_of_peer(recipe, slot), .workers = workers[slot], .clock = clock},
        *all[slot].learner, peers->membership(slot), peers->exchange(slot));
    EXPECT_TRUE(all[slot].replica->start(soon_enough()).ok());
  }
  for (std::uint64_t step = 0; step < kPeerSteps; ++step) {
    for (One& one : all) {
      const Result<Stance> begun = one.replica->begin_step(soon_enough());
      EXPECT_TRUE(begun.ok() && *begun == Stance::kTakePart);
    }
    peers->settle();
    for (One& one : all) EXPECT_TRUE(one.replica->end_step(soon_enough()).ok());
  }
  std::vector<std::uint64_t> digests;
  for (const One& one : all) {
    digests.push_back(digest_of(one.learner->parameters()));
    digests.push_back(digest_of(one.replica->engine().shared()));
  }
  return digests;
}

// With a planner of layers: that recipe without it, so its layers are spread evenly over a period.
std::vector<Recipe> recipes_with_fixed_plans() {
  std::vector<Recipe> fixed;
  for (Recipe recipe : all_recipes()) {
    if (recipe.planner != PlannerKind::kNone && recipe.planner != PlannerKind::kLayers) continue;
    recipe.planner = PlannerKind::kNone;
    if (recipe.layers == LayerPolicy::kScheduledLate) recipe.plan.delay_steps = 2;
    fixed.push_back(recipe);
  }
  return fixed;
}

TEST_P(ExchangeConformance, ARunHasTheSameBitsHoweverItIsConnected) {
  for (const Recipe& recipe : recipes_with_fixed_plans()) {
    EXPECT_EQ(digests_of_run(GetParam().second, recipe),
              digests_of_run(connected<LabPeers>, recipe))
        << recipe.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ExchangeConformance,
                         ::testing::Values(std::pair("hub", Connect(connected<HubPeers>)),
                                           std::pair("lab", Connect(connected<LabPeers>)),
                                           std::pair("collective",
                                                     Connect(connected<CollectivePeers>))),
                         [](const auto& way) { return std::string(way.param.first); });

}  // namespace
}  // namespace longhaul
