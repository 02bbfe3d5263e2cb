// A step that is driven part by part, in whatever order, has the bits of a step of the whole model.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "longhaul/base/state.h"
#include "longhaul/codec/digest.h"
#include "longhaul/sync/learner_step.h"
#include "tests/sync/random_runs.h"

namespace longhaul::testing {
namespace {

// Now and then a part of a gradient is not finite.
void spoil(const Engine& engine, std::size_t replica, std::span<float> gradient) {
  const std::size_t step = engine.steps_done();
  if ((3 * step + replica) % 7 != 0) return;
  const Part& part = engine.part(static_cast<std::uint32_t>(step % engine.parts()));
  part.of(gradient)[0] = std::numeric_limits<float>::quiet_NaN();
}

// Drives the engines of a cluster part by part, and replaces them between any two calls.
struct ByParts {
  Cluster& cluster;
  std::mt19937_64 random;

  Engine& engine(std::size_t replica) {
    if (random() % 6 == 0) {
      const ByteBuffer file = to_bytes(cluster.replicas[replica].engine->save());
      LONGHAUL_CHECK(cluster.renew(replica).load(state_from_bytes(file).value()).ok());
    }
    return *cluster.replicas[replica].engine;
  }

  std::vector<std::uint32_t> shuffled_parts(std::size_t replica) {
    std::vector<std::uint32_t> parts(cluster.replicas[replica].engine->parts());
    std::iota(parts.begin(), parts.end(), 0U);
    std::ranges::shuffle(parts, random);
    return parts;
  }

  // Means of earlier steps are there: a part may be merged while others are not ready.
  void submit(std::size_t replica, std::span<float> gradient) {
    engine(replica).begin_step();
    for (const std::uint32_t part : shuffled_parts(replica)) {
      const Part where = cluster.replicas[replica].engine->part(part);
      engine(replica).ready(part, where.of(gradient));
      const Engine& now = *cluster.replicas[replica].engine;
      if (!now.is_due({.step = now.steps_done()}) && random() % 2 == 0)
        LONGHAUL_CHECK(engine(replica).merge_before(part).ok());
    }
  }

  void merge_all() {
    cluster.settle();
    for (std::size_t i = 0; i < cluster.replicas.size(); ++i) {
      for (const std::uint32_t part : shuffled_parts(i)) {
        if (random() % 2 == 0) LONGHAUL_CHECK(engine(i).merge_before(part).ok());
      }
      LONGHAUL_CHECK(engine(i).end_step().ok());
    }
  }
};

Recipe with_parts(const char* name, Merge merge, const char* codec) {
  Recipe recipe = uneven_recipe();
  recipe.name = name;
  recipe.plan.merge = merge;
  recipe.codec = parse_codec(codec).value();
  recipe.local.outer = OptimizerKind::kNesterov;
  recipe.local.outer_momentum = 0.9F;
  return recipe;
}

class ByPart : public ::testing::TestWithParam<Recipe> {};

TEST_P(ByPart, HasTheBitsOfTheWholeModelInAnyOrder) {
  std::mt19937_64 random(31);
  for (int trial = 0; trial < 6; ++trial) {
    EngineOptions options = random_run_options(GetParam(), random);
    options.clip = trial % 2 == 0 ? 0.0 : 3.0;
    QuadraticWorkload workload(kRunElements, random());
    Cluster whole(options, workload, {1, 2, 0.5});
    Cluster parts(options, workload, {1, 2, 0.5});
    ByParts by_parts{.cluster = parts, .random = std::mt19937_64(random())};
    whole.submit_with = [&](std::size_t i, std::span<float> gradient) {
      spoil(*whole.replicas[i].engine, i, gradient);
      whole.replicas[i].engine->submit(gradient);
    };
    parts.submit_with = [&](std::size_t i, std::span<float> gradient) {
      spoil(*parts.replicas[i].engine, i, gradient);
      by_parts.submit(i, gradient);
    };
    const std::uint64_t seed = random();
    Script for_whole(options.recipe, seed);
    Script for_parts(options.recipe, seed);
    for (int step = 0; step < 40; ++step) {
      for_whole.step(whole);
      for_parts.submit_all(parts);
      by_parts.merge_all();
      SCOPED_TRACE("trial " + std::to_string(trial) + ", step " + std::to_string(step));
      ASSERT_NO_FATAL_FAILURE(expect_same_replicas(whole, parts));
    }
    ASSERT_GE(whole.replicas[0].exchange->rounds_merged(), 10U);
    ASSERT_GE(whole.replicas[0].engine->non_finite_steps(), 2U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, ByPart,
    ::testing::Values(uneven_recipe(), find_recipe("streaming-diloco").value(),
                      find_recipe("static").value(), find_recipe("auto").value(),
                      with_parts("late-dense", Merge::kLate, "dense/fp32"),
                      with_parts("late-chunks", Merge::kLate, "chunk_top_k/2bit"),
                      with_parts("late-low-rank", Merge::kLate, "low_rank"),
                      with_parts("outer-top-k", Merge::kOuter, "top_k/bf16"),
                      with_parts("outer-4bit", Merge::kOuter, "dense/4bit")),
    [](const auto& test) { return test_name_of(test.param); });

// Tells of pieces of its gradient in an order by lot, and keeps some to itself.
class TellingLearner final : public Learner {
 public:
  TellingLearner(std::unique_ptr<Learner> inner, std::uint64_t seed)
      : inner_(std::move(inner)), random_(seed) {}
  [[nodiscard]] std::span<float> parameters() override { return inner_->parameters(); }
  [[nodiscard]] std::span<float> gradient() override { return inner_->gradient(); }
  double compute_gradient() override { return inner_->compute_gradient(); }
  double compute_gradient_by_layers(const LayerWatch& watch) override {
    std::vector<Part> pieces = split_into_parts({}, parameters().size(), 11);
    std::ranges::shuffle(pieces, random_);
    if (watch.before_use) {
      for (const Part& piece : pieces) watch.before_use(piece.first, piece.count);
    }
    const double loss = inner_->compute_gradient();
    const std::vector<float> whole(gradient().begin(), gradient().end());
    std::ranges::fill(gradient(), std::numeric_limits<float>::quiet_NaN());
    std::ranges::shuffle(pieces, random_);
    for (const Part& piece : pieces) {
      std::ranges::copy(piece.of(std::span(whole)), piece.of(gradient()).begin());
      if (random_() % 5 != 0) watch.ready(piece.first, piece.count);
    }
    return loss;
  }
  void save(State& state) const override { inner_->save(state); }
  Status load(const State& state) override { return inner_->load(state); }

 private:
  std::unique_ptr<Learner> inner_;
  std::mt19937_64 random_;
};

// The digests of the model after each step of a replica alone.
std::vector<std::uint64_t> digests_of_run(const Recipe& recipe, bool is_telling) {
  std::mt19937_64 random(8);
  Workers workers{1};
  SimulatedNetwork network(std::vector<SimulatedPeer>{{.link = test_link()}}, workers);
  QuadraticWorkload workload(kRunElements, 9);
  std::unique_ptr<Learner> learner = workload.make_learner(0);
  if (is_telling) learner = std::make_unique<TellingLearner>(std::move(learner), 10);
  Engine engine(random_run_options(recipe, random), learner->parameters(), network.exchange(0),
                workers);
  std::vector<std::uint64_t> digests;
  for (int step = 0; step < 30; ++step) {
    EXPECT_GT(compute_and_submit(*learner, engine), 0.0);
    LONGHAUL_CHECK(network.settle().ok());
    LONGHAUL_CHECK(engine.end_step().ok());
    digests.push_back(digest_of(learner->parameters()));
  }
  EXPECT_EQ(engine.non_finite_steps(), 0U) << "no part was ready too early";
  return digests;
}

TEST_P(ByPart, HasTheSameBitsHoweverALearnerTellsOfItsLayers) {
  EXPECT_EQ(digests_of_run(GetParam(), true), digests_of_run(GetParam(), false));
}

// One replica of three parts with four elements each, plain SGD with a rate of 1.
class ThreeParts : public ::testing::Test {
 protected:
  static EngineOptions options() {
    EngineOptions options = local_options("dense/fp32", {});
    options.recipe.local.fragments = 3;
    options.lr.peak = 1;
    options.clip = 2;
    return options;
  }

  // A step whose parts have gradients of that norm. How far each part has moved.
  std::vector<float> step(const std::vector<float>& norms) {
    const std::vector<float> before = parameters_;
    engine_.begin_step();
    for (std::uint32_t part = 0; part < 3; ++part) {
      std::vector<float> gradient(4);
      gradient[1] = norms[part];
      engine_.ready(part, gradient);
    }
    LONGHAUL_CHECK(network_.settle().ok());
    LONGHAUL_CHECK(engine_.end_step().ok());
    std::vector<float> moves;
    for (std::size_t part = 0; part < 3; ++part)
      moves.push_back(before[4 * part + 1] - parameters_[4 * part + 1]);
    return moves;
  }

  Workers workers_{1};
  std::vector<float> parameters_ = std::vector<float>(12);
  SimulatedNetwork network_{std::vector<SimulatedPeer>{{.link = test_link()}}, workers_};
  Engine engine_{options(), parameters_, network_.exchange(0), workers_};
};

using Moves = std::vector<float>;

TEST_F(ThreeParts, AreClippedByTheNormOfTheStepBefore) {
  EXPECT_EQ(step({1, 4, 8}), (Moves{1, 2, 2})) << "no step before: each by its own norm";
  const Moves second = step({1, 2, 2});
  EXPECT_FLOAT_EQ(second[0], 2.0F / 9) << "norm before: 9";
  EXPECT_FLOAT_EQ(second[1], 4.0F / 9);
  const Moves third = step({3, 4, 0});
  EXPECT_FLOAT_EQ(third[0], 2) << "norm before: 3, and its own is no larger";
  EXPECT_FLOAT_EQ(third[1], 2) << "its own norm, 4, is larger";
}

TEST_F(ThreeParts, GoOnWithoutAPartWhoseGradientIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(step({1, 2, 2}), (Moves{1, 2, 2}));
  EXPECT_EQ(step({nan, 3, nan}), (Moves{0, 2, 0}));
  EXPECT_EQ(engine_.non_finite_steps(), 1U) << "once in a step";
  EXPECT_EQ(step({3, 0, 0}), (Moves{2, 0, 0})) << "the norm is still that of the first step, 3";
}

TEST_F(ThreeParts, AreReadyOnceAndMergedWhenTheyAre) {
  std::vector<float> gradient(4);
  engine_.begin_step();
  engine_.ready(1, gradient);
  EXPECT_FALSE(engine_.is_half_done());
  EXPECT_THROW(engine_.ready(1, gradient), std::logic_error);
  EXPECT_THROW((void)engine_.merge_before(0), std::logic_error);
  EXPECT_THROW((void)engine_.end_step(), std::logic_error);
  EXPECT_THROW(engine_.begin_step(), std::logic_error);
}

}  // namespace
}  // namespace longhaul::testing
