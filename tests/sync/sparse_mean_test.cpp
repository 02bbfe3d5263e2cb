// A mean that comes as payloads does what the same mean does as a vector, for every rule and every
// number of threads.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/accumulate.h"
#include "longhaul/sync/merge_rule.h"
#include "tests/codec/checked.h"
#include "tests/codec/test_data.h"
#include "tests/sync/cluster.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;

constexpr std::size_t kSparseElements = 3 * kTileElements + 1000;
constexpr std::uint64_t kSparseDelay = 2;
constexpr double kSparseLr = 0.05;

ByteBuffer sparse_payload(std::uint64_t seed) {
  Workers workers;
  std::vector<float> update = normal_update(kSparseElements, seed);
  return make_codec(parse_codec("top_k/bf16").value(), {}, workers)
      ->take({.residual = update, .keep_ratio = 0.01});
}

// Sends what it is told to send, so that two replicas send the same.
class FixedCodec final : public Codec {
 public:
  [[nodiscard]] ByteBuffer take(const TakeOptions& /*request*/) override { return payload; }
  [[nodiscard]] double expected_bytes(std::size_t /*elements*/, double /*ratio*/) const override {
    return static_cast<double>(payload.size());
  }
  ByteBuffer payload;
};

WeightedPayload term_of(ByteBuffer payload) {
  return {.payload = testing_data::checked(std::move(payload), kSparseElements), .weight = 0.5F};
}

struct SparseReplica {
  SparseReplica(Merge merge, std::size_t threads)
      : workers(threads),
        optimizer({}, kSparseElements),
        rule(make_merge_rule({.recipe = {.plan = {.merge = merge}}, .lr = {.peak = kSparseLr}},
                             parameters, parameters, optimizer, workers)) {}

  void send(std::uint64_t step, const ByteBuffer& payload) {
    const std::vector<float> moved = normal_update(kSparseElements, 500 + step);
    for (std::size_t i = 0; i < kSparseElements; ++i) parameters[i] -= 1e-2F * moved[i];
    codec.payload = payload;
    const ByteBuffer taken = rule->take({.first = 0, .count = kSparseElements}, codec, {});
    rule->sent({.step = step}, testing_data::checked(taken, kSparseElements));
  }
  void merge(std::uint64_t step, const Mean& mean) {
    rule->merge(step, {.first = 0, .count = kSparseElements}, mean);
  }

  Workers workers;
  std::vector<float> parameters = normal_update(kSparseElements, 1);
  Optimizer optimizer;
  FixedCodec codec;
  std::unique_ptr<MergeRule> rule;
};

class SparseMean : public ::testing::TestWithParam<Merge> {};

TEST_P(SparseMean, DoesWhatTheSameMeanDoesAsAVector) {
  SparseReplica dense(GetParam(), 1);
  SparseReplica sparse(GetParam(), 1);
  SparseReplica threads(GetParam(), 3);
  std::deque<ByteBuffer> own;
  for (std::uint64_t step = 0; step < 9; ++step) {
    own.push_back(sparse_payload(2 * step));
    for (SparseReplica* replica : {&dense, &sparse, &threads}) replica->send(step, own.back());
    if (step < kSparseDelay) continue;
    const RoundId round{.step = step - kSparseDelay};
    const Mean terms{.round = round,
                     .terms = {term_of(own.front()), term_of(sparse_payload(2 * step + 1))}};
    own.pop_front();
    ASSERT_TRUE(terms.is_sparse());
    auto values = std::make_shared<std::vector<float>>(kSparseElements);
    sum_payloads(terms.terms, *values, dense.workers);
    dense.merge(step, {.round = round, .values = values});
    sparse.merge(step, terms);
    threads.merge(step, terms);
    ASSERT_TRUE(same_bits(sparse.rule->shared(), dense.rule->shared())) << step;
    ASSERT_TRUE(same_bits(sparse.rule->shared(), threads.rule->shared())) << step;
    ASSERT_TRUE(same_bits(sparse.parameters, threads.parameters)) << step;
    ASSERT_TRUE(same_bits(sparse.parameters, dense.parameters)) << step;
    ASSERT_TRUE(same_bits(sparse.rule->residual(), dense.rule->residual())) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, SparseMean,
                         ::testing::Values(Merge::kOptimizer, Merge::kLate, Merge::kOuter),
                         [](const auto& test) { return testing::test_name_of(test.param); });

// The same for an engine that leaves the local step to its caller, beside one that makes it.
TEST(CallersStep, SendsWhatTheParametersMoved) {
  constexpr std::size_t kElements = 2000;
  Workers workers;
  const auto link = [] { return std::vector<SimulatedPeer>{{.link = testing::test_link()}}; };
  SimulatedNetwork our_network(link(), workers);
  SimulatedNetwork their_network(link(), workers);
  for (const Merge merge : {Merge::kLate, Merge::kOuter, Merge::kAnchor}) {
    EngineOptions options = testing::setup_of(
        merge, "top_k/bf16", {.keep_ratio = 0.05, .delay_steps = 2, .period_steps = 3});
    options.optimizer = {.kind = OptimizerKind::kMomentum, .momentum = 0.5F};
    std::vector<float> ours = normal_update(kElements, 1);
    std::vector<float> theirs = ours;
    Engine our_engine(options, ours, our_network.exchange(0), workers);
    options.local_step = LocalStep::kCallers;
    Engine their_engine(options, theirs, their_network.exchange(0), workers);
    Optimizer optimizer(options.optimizer, kElements);
    for (std::uint64_t step = 0; step < 12; ++step) {
      std::vector<float> gradient = normal_update(kElements, 10 + step);
      optimizer.step(0, theirs, gradient, options.lr.at(step));
      their_engine.submit_moved();
      our_engine.submit(gradient);
      for (SimulatedNetwork* network : {&our_network, &their_network})
        ASSERT_TRUE(network->settle().ok());
      ASSERT_TRUE(our_engine.end_step().ok());
      ASSERT_TRUE(their_engine.end_step().ok());
      ASSERT_TRUE(same_bits(ours, theirs)) << name_of(merge) << ' ' << step;
      ASSERT_TRUE(same_bits(our_engine.shared(), their_engine.shared())) << name_of(merge);
    }
    ASSERT_TRUE(our_engine.drain().ok());
    ASSERT_TRUE(their_engine.drain().ok());
  }
}

TEST(CallersStep, IsHandedTheMeanOfGradients) {
  constexpr std::size_t kElements = 4;
  Workers workers;
  SimulatedNetwork network(std::vector<SimulatedPeer>{{.link = testing::test_link()}}, workers);
  EngineOptions options = testing::setup_of(Merge::kOptimizer, "dense/fp32", {.delay_steps = 1});
  options.local_step = LocalStep::kCallers;
  std::vector<float> parameters(kElements, 1.0F);
  Engine engine(options, parameters, network.exchange(0), workers);
  std::vector<float> gradient{1, 2, 3, 4};
  engine.submit(gradient);
  ASSERT_TRUE(network.settle().ok() && engine.end_step().ok());
  EXPECT_TRUE(engine.mean_gradient().empty());
  std::vector<float> next(kElements);
  engine.submit(next);
  ASSERT_TRUE(network.settle().ok() && engine.end_step().ok());
  EXPECT_TRUE(same_bits(engine.mean_gradient(), gradient));
  EXPECT_EQ(parameters, std::vector<float>(kElements, 1.0F)) << "the caller steps";
}

TEST(CallersStep, RefusesRulesThatNeedOurOptimizer) {
  EngineOptions options = testing::setup_of(Merge::kLate, "dense/fp32", {});
  options.local_step = LocalStep::kCallers;
  Plan ahead = options.recipe.plan;
  ahead.merge = Merge::kAhead;
  EXPECT_FALSE(check_plan(ahead, options).ok());
  EXPECT_TRUE(check_plan(options.recipe.plan, options).ok());
}

}  // namespace
}  // namespace longhaul
