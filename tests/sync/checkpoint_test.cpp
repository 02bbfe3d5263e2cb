// A replica that goes on from its checkpoint does what it would have done, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/base/state.h"
#include "longhaul/codec/digest.h"
#include "tests/sync/random_runs.h"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;

// The engine ends, and a fresh one loads what it wrote.
void restart(Cluster& cluster, std::size_t replica) {
  const ByteBuffer file = to_bytes(cluster.replicas[replica].engine->save());
  const Status loaded = cluster.renew(replica).load(state_from_bytes(file).value());
  LONGHAUL_CHECK(loaded.ok());
}

class Checkpoint : public ::testing::TestWithParam<Recipe> {};

TEST_P(Checkpoint, ContinuesBitForBitFromEveryStep) {
  std::mt19937_64 random(21);
  for (int trial = 0; trial < 4; ++trial) {
    const EngineOptions options = random_run_options(GetParam(), random);
    QuadraticWorkload workload(kRunElements, random());
    Cluster whole(options, workload, {1, 2, 0.5});
    Cluster broken(options, workload, {1, 2, 0.5});
    const std::uint64_t seed = random();
    Script for_whole(options.recipe, seed);
    Script for_broken(options.recipe, seed);
    for (int step = 0; step < 30; ++step) {
      for_whole.step(whole);
      for_broken.submit_all(broken);
      if (random() % 4 == 0) restart(broken, random() % 3);  // between the halves of a step
      broken.merge_all();
      if (random() % 4 == 0) restart(broken, random() % 3);
      if (random() % 8 == 0) {
        for (std::size_t i = 0; i < 3; ++i) restart(broken, i);
      }
      SCOPED_TRACE("trial " + std::to_string(trial) + ", step " + std::to_string(step));
      ASSERT_NO_FATAL_FAILURE(expect_same_replicas(whole, broken));
    }
    ASSERT_GE(whole.replicas[0].exchange->rounds_merged(), 2U);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(whole.replicas[i].engine->drain().ok());
      ASSERT_TRUE(broken.replicas[i].engine->drain().ok());
    }
    ASSERT_NO_FATAL_FAILURE(expect_same_replicas(whole, broken));
  }
}

// A round is sent in the step in which the one before is merged, and every engine is replaced in
// between.
TEST(CheckpointBetweenHalves, KeepsWhereAReplicaStands) {
  for (const char* name : {"streaming-diloco", "sparseloco", "overlap-local-sgd", "olco3-oc"}) {
    EngineOptions options{.recipe = find_recipe(name).value(), .lr = {.peak = 0.02}};
    options.recipe.codec = parse_codec("dense/4bit").value();
    options.recipe.local.fragments = 1;
    options.recipe.plan.period_steps = 2;
    options.recipe.plan.delay_steps = 2;
    QuadraticWorkload workload(kRunElements);
    Cluster whole(options, workload, {1, 2, 0.5});
    Cluster broken(options, workload, {1, 2, 0.5});
    for (int step = 0; step < 20; ++step) {
      whole.step();
      broken.submit_all();
      for (std::size_t i = 0; i < 3; ++i) restart(broken, i);
      broken.merge_all();
      SCOPED_TRACE(name + (" in step " + std::to_string(step)));
      ASSERT_NO_FATAL_FAILURE(expect_same_replicas(whole, broken));
    }
  }
}

// Two rounds are due in one step, as the delay has become shorter, and the second mean is not there
// yet when the engine is replaced.
TEST(CheckpointBetweenMerges, KeepsWhatTheFirstHasDone) {
  for (const char* name : {"streaming-diloco", "diloco", "overlap-local-sgd", "static"}) {
    EngineOptions options{.recipe = find_recipe(name).value(), .lr = {.peak = 0.02}};
    options.recipe.local.fragments = 1;
    options.recipe.plan.period_steps = 1;
    options.recipe.plan.delay_steps = 3;
    Plan sooner = options.recipe.plan;
    sooner.delay_steps = 2;
    QuadraticWorkload workload(kRunElements);
    Cluster whole(options, workload, {1, 2});
    Cluster broken(options, workload, {1, 2});
    whole.announce(sooner);  // with the round of step 0, merged in step 3
    broken.announce(sooner);
    for (int step = 0; step < 10; ++step) {
      whole.step();
      broken.submit_all();
      if (step == 4) {
        broken.settle();
        broken.replicas[0].returning->stalls_at = RoundId{.step = 2};
        ASSERT_FALSE(broken.replicas[0].engine->end_step().ok());
        ASSERT_EQ(broken.replicas[0].engine->rounds_in_flight(), 3U) << "one is merged";
        restart(broken, 0);
        broken.replicas[0].returning->stalls_at.reset();
      }
      broken.merge_all();
      SCOPED_TRACE(name + (" in step " + std::to_string(step)));
      ASSERT_NO_FATAL_FAILURE(expect_same_replicas(whole, broken));
    }
  }
}

TEST(CheckpointPlan, KeepsAPlanThatIsAnnounced) {
  QuadraticWorkload workload(51);
  Cluster cluster({.recipe = find_recipe("static").value()}, workload, {1, 1});
  const Plan next{.keep_ratio = 0.25, .delay_steps = 1, .merge = Merge::kAhead};
  cluster.announce(next);
  cluster.step();
  for (const ClusterReplica& replica : cluster.replicas) ASSERT_TRUE(replica.engine->drain().ok());
  restart(cluster, 0);
  EXPECT_NE(cluster.replicas[0].engine->plan(), next);
  cluster.step();
  for (const ClusterReplica& replica : cluster.replicas) EXPECT_EQ(replica.engine->plan(), next);
}

// Does a run that was restarted once, with `damage` done to the checkpoint, end elsewhere?
bool is_noticed(const Recipe& recipe, const std::function<void(State&)>& damage) {
  std::mt19937_64 random(22);
  EngineOptions options = random_run_options(recipe, random);
  options.optimizer.kind = OptimizerKind::kMomentum;
  QuadraticWorkload workload(kRunElements);
  Cluster whole(options, workload, {1, 1});
  Cluster broken(options, workload, {1, 1});
  for (int step = 0; step < 20; ++step) {
    whole.step();
    broken.step();
    if (step != 6) continue;
    State state = broken.replicas[1].engine->save();
    damage(state);
    LONGHAUL_CHECK(broken.renew(1).load(state).ok());
  }
  return digest_of(whole.replicas[1].learner->parameters()) !=
         digest_of(broken.replicas[1].learner->parameters());
}

void forget_tensor(State& state, const std::string& name) {
  std::ranges::fill(state.tensors.at(name), 0.0F);
}

TEST(CheckpointMutation, WithoutDamageNothingIsNoticed) {
  for (const char* name : {"dd-ef-sgd", "static", "dga", "diloco", "streaming-diloco", "sparseloco",
                           "overlap-local-sgd", "olco3-oc"})
    EXPECT_FALSE(is_noticed(find_recipe(name).value(), [](State&) {})) << name;
}

TEST(CheckpointMutation, NoticesAResidualThatIsLeftOut) {
  for (const auto& [name, tensor] :
       {std::pair{"dd-ef-sgd", "residual"}, {"cocktail", "residual"}, {"static", "position"}}) {
    EXPECT_TRUE(is_noticed(find_recipe(name).value(),
                           [lost = tensor](State& state) { forget_tensor(state, lost); }))
        << name << ' ' << tensor;
  }
}

TEST(CheckpointMutation, NoticesAMessageThatIsLeftOut) {
  Recipe ahead = find_recipe("deco-ahead").value();
  ahead.plan.delay_steps = 3;
  const Recipe late = find_recipe("static").value();
  for (const auto& [recipe, message] : {std::pair{&late, "message.4.0"},
                                        {&late, "message.5.0"},
                                        {&late, "message.6.0"},
                                        {&ahead, "message.4.0"},
                                        {&ahead, "message.6.0"}}) {
    EXPECT_TRUE(
        is_noticed(*recipe, [lost = message](State& state) { state.blobs.at(lost).clear(); }))
        << recipe->name << ' ' << message;
  }
  EXPECT_TRUE(is_noticed(find_recipe("dga").value(),
                         [](State& state) { forget_tensor(state, "gradient.5.0"); }));
}

TEST(CheckpointMutation, NoticesAnOptimizerOrACodecThatIsLeftOut) {
  EXPECT_TRUE(is_noticed(find_recipe("d-sgd").value(),
                         [](State& state) { forget_tensor(state, "optimizer"); }));
  EXPECT_TRUE(is_noticed(find_recipe("static").value(),
                         [](State& state) { forget_tensor(state, "optimizer"); }));
  EXPECT_TRUE(is_noticed(all_kinds_of_recipes().back(),
                         [](State& state) { std::ranges::reverse(state.tensors.at("codec")); }));
}

// A round ends in steps 4 and 9, and the checkpoint is of step 6: delays of two steps merge just
// before it, delays of three just after it.
TEST(CheckpointMutation, NoticesWhatRulesWithLocalStepsForget) {
  struct Forgotten {
    const char* recipe;
    int delay_steps;
    std::vector<const char*> tensors;
  };
  const std::vector<Forgotten> all{
      {"diloco", 0, {"outer_optimizer", "position", "from", "optimizer"}},
      {"diloco", 3, {"position", "from"}},
      {"streaming-diloco", 2, {"outer_optimizer", "position", "from", "optimizer"}},
      {"sparseloco", 0, {"residual", "position"}},
      {"sparseloco", 3, {"from"}},
      {"overlap-local-sgd", 2, {"anchor_velocity", "position", "optimizer"}},
      {"overlap-local-sgd", 5, {"anchor.4.0"}},
      {"cocod-sgd", 5, {"position", "optimizer"}}};
  for (const Forgotten& one : all) {
    Recipe recipe = find_recipe(one.recipe).value();
    recipe.plan.delay_steps = one.delay_steps;
    recipe.local.delay_periods = 0;
    recipe.local.fragments = 1;
    for (const char* tensor : one.tensors) {
      EXPECT_TRUE(is_noticed(recipe, [&](State& state) { forget_tensor(state, tensor); }))
          << one.recipe << ": " << tensor;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, Checkpoint, ::testing::ValuesIn(all_kinds_of_recipes()),
                         [](const auto& test) { return test_name_of(test.param); });

class CheckpointRefusal : public ::testing::Test {
 protected:
  CheckpointRefusal() {
    for (int step = 0; step < 6; ++step) cluster_.step();
    state_ = engine().save();
  }
  static EngineOptions options() {
    return {.recipe = find_recipe("static").value(), .lr = {.peak = 0.02}};
  }
  Engine& engine() { return *cluster_.replicas[0].engine; }

  // What a load says to the state, after which the engine is what it was.
  std::string refusal() {
    const State before = engine().save();
    const Status loaded = engine().load(state_);
    EXPECT_TRUE(loaded.ok() || engine().save() == before);
    return loaded.ok() ? "accepted" : loaded.error().message;
  }
  std::string refusal_of(const std::string& value, const nlohmann::json& other) {
    const nlohmann::json before = std::exchange(state_.values[value], other);
    std::string said = refusal();
    state_.values[value] = before;
    return said;
  }

  QuadraticWorkload workload_{51};
  Cluster cluster_{options(), workload_, {1, 1}};
  State state_;
};

TEST_F(CheckpointRefusal, OfTensorsThatDoNotFit) {
  EXPECT_EQ(refusal(), "accepted");
  for (const std::string name : {"shared", "position", "optimizer", "codec"}) {
    const std::vector<float> before = state_.tensors.at(name);
    state_.tensors[name].push_back(0);
    EXPECT_THAT(refusal(), HasSubstr("checkpoint: tensor \"" + name + "\": expected"));
    state_.tensors.erase(name);
    EXPECT_EQ(refusal(), "checkpoint: no tensor \"" + name + '"');
    state_.tensors[name] = before;
  }
  state_.tensors["position"][7] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(), "checkpoint: position: element 7 of 51 is not finite");
}

TEST_F(CheckpointRefusal, OfMessagesThatDoNotFit) {
  state_.blobs.at("message.4.0").back() ^= std::byte{1};
  EXPECT_THAT(refusal(), HasSubstr("checkpoint: message.4.0: "));
  state_.blobs.erase("message.4.0");
  EXPECT_EQ(refusal(), "checkpoint: no bytes \"message.4.0\"");
}

TEST_F(CheckpointRefusal, OfValuesThatDoNotFit) {
  EXPECT_EQ(refusal_of("version", 1),
            "checkpoint: expected version 4, got 1: of an older release, whose runs begin anew");
  EXPECT_EQ(refusal_of("version", 5), "checkpoint: expected version 4, got 5");
  EXPECT_THAT(refusal_of("kind", "snapshot"), HasSubstr("this is a snapshot"));
  EXPECT_THAT(refusal_of("step", -1), HasSubstr("\"step\""));
  EXPECT_THAT(refusal_of("step", std::uint64_t{1} << 60U), HasSubstr("step: absurd"));
  EXPECT_THAT(refusal_of("step", 5), HasSubstr("in_flight: not up to the step"));
  EXPECT_THAT(refusal_of("step", 7), HasSubstr("period_start: the step is not in the period"));
  EXPECT_THAT(refusal_of("period_start", 5), HasSubstr("period_start: the step is not in"));
  EXPECT_THAT(refusal_of("period_start", 7), HasSubstr("period_start: the step is not in"));
  EXPECT_EQ(refusal_of("period_plan.period_steps", 2), "accepted");
  EXPECT_THAT(refusal_of("period_plan.schedule", nlohmann::json::parse("[[0]]")),
              HasSubstr("period_plan: schedule: the"));
  EXPECT_THAT(refusal_of("in_flight_parts", {0, 1, 0}), HasSubstr("in_flight_parts: of another"));
  EXPECT_THAT(refusal_of("in_flight_parts", {0}), HasSubstr("in_flight_parts: not one for each"));
  EXPECT_THAT(refusal_of("ready", {1}), HasSubstr("ready: not parts of the model"));
  EXPECT_THAT(refusal_of("ready", {0, 0}), HasSubstr("ready: not parts of the model"));
  EXPECT_THAT(refusal_of("ready", {0}), HasSubstr("in_flight: without the round of the step"));
  EXPECT_THAT(refusal_of("gradient_squares", {1.0, 1.0}), HasSubstr("gradient_squares: not one"));
  EXPECT_THAT(refusal_of("in_flight", {3, 5, 4}), HasSubstr("in_flight: not in order"));
  EXPECT_THAT(refusal_of("in_flight", {4, 5}),
              HasSubstr("in_flight_parts: not one for each round"));
  EXPECT_THAT(refusal_of("units", {"move", "move", "x"}), HasSubstr("got \"x\""));
  EXPECT_THAT(refusal_of("non_finite_steps", "many"), HasSubstr("\"non_finite_steps\""));
}

TEST_F(CheckpointRefusal, OfPlansThatTheEngineCannotFollow) {
  EXPECT_THAT(refusal_of("plan.keep_ratio", 0.0), HasSubstr("plan: keep_ratio outside (0, 1]"));
  EXPECT_THAT(refusal_of("plan.keep_ratio", 1.5), HasSubstr("plan: keep_ratio outside (0, 1]"));
  EXPECT_THAT(refusal_of("plan.delay_steps", -1), HasSubstr("plan: delay_steps -1"));
  EXPECT_THAT(refusal_of("plan.delay_steps", "3"), HasSubstr("\"plan.delay_steps\""));
  EXPECT_THAT(refusal_of("plan.delay_steps", 10'001), HasSubstr("plan: delay_steps 10001"));
  EXPECT_EQ(refusal_of("plan.period_steps", 2), "accepted");
  EXPECT_THAT(refusal_of("plan.period_steps", 0), HasSubstr("plan: period_steps 0"));
  EXPECT_THAT(refusal_of("plan.period_steps", 10'001), HasSubstr("plan: period_steps 10001"));
  EXPECT_THAT(refusal_of("plan.merge", "own-step"),
              HasSubstr("merge rule own-step, expected late"));
  EXPECT_THAT(refusal_of("plan.merge", "none"), HasSubstr("no merge rule none"));
  EXPECT_EQ(refusal_of("plan.merge", "ahead"), "checkpoint: no tensor \"residual\"");
  EXPECT_THAT(refusal_of("next_plan.merge", "late"), HasSubstr("\"next_plan.keep_ratio\""));
}

TEST_F(CheckpointRefusal, OfLookAheadWithAdamW) {
  EngineOptions adamw = options();
  adamw.optimizer.kind = OptimizerKind::kAdamW;
  Cluster other(adamw, workload_, {1, 1});
  State state = other.replicas[0].engine->save();
  state.values["plan.merge"] = "ahead";
  EXPECT_EQ(other.replicas[0].engine->load(state).error().message,
            "checkpoint: plan: look-ahead with AdamW");
}

}  // namespace
}  // namespace longhaul::testing
