#include "trainer/workload.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "longhaul/base/state.h"
#include "longhaul/base/workers.h"
#include "tests/trainer/data_files.h"
#include "trainer/threads.h"

namespace longhaul::trainer {
namespace {

using testing::HasSubstr;

// Easy images of 16 × 16 pixels; the directory lives as long as the workload needs it: until make()
// returns.
std::unique_ptr<TorchWorkload> easy_workload(WorkloadOptions config) {
  const TestDirectory directory;
  write_easy_images(directory, 16, 400, 100);
  config.data = {.kind = "mnist", .path = directory.path()};
  auto made = TorchWorkload::make(config);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

// The gradients of all replicas after a few steps, each on its own parameters, computed by
// `threads` threads.
std::vector<std::vector<float>> gradients(TorchWorkload& workload, std::size_t replicas,
                                          std::size_t threads) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t i = 0; i < replicas; ++i) learners.push_back(workload.make_learner(i));
  Workers workers(threads);
  for (int step = 0; step < 4; ++step) {
    workers.run(replicas, [&](std::size_t i) {
      learners[i]->compute_gradient();
      const auto parameters = learners[i]->parameters();
      const auto gradient = learners[i]->gradient();
      for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p] -= 0.05F * gradient[p];
    });
  }
  std::vector<std::vector<float>> all;
  for (const auto& learner : learners) all.push_back(copy_of(learner->gradient()));
  return all;
}

std::vector<std::pair<std::string, ModelKnobs>> some_models() {
  return {{"cnn", {}}, {"mlp", {{"dropout", 0.3}}}, {"resnet", {{"width", 8}}}};
}

TEST(Workload, GradientsAreTheSameBitsHoweverManyThreadsRun) {
  for (const auto& [model, knobs] : some_models()) {
    const auto workload =
        easy_workload({.model = model, .knobs = knobs, .replicas = 5, .batch = 16});
    const auto alone = gradients(*workload, 5, 1);
    EXPECT_EQ(alone, gradients(*workload, 5, 2)) << model;
    EXPECT_EQ(alone, gradients(*workload, 5, 5)) << model;
  }
}

TEST(Workload, EachReplicaDropsOutByItsOwnGenerator) {
  const auto first_loss = [](double dropout, std::size_t replica) {
    // One share of all samples as one batch: without dropout, replicas differ by rounding only.
    const auto workload = easy_workload(
        {.model = "mlp", .knobs = {{"dropout", dropout}}, .replicas = 1, .batch = 400});
    if (replica == 0) return workload->make_learner(0)->compute_gradient();
    return workload->make_joint_learner()->compute_gradient();
  };
  EXPECT_NEAR(first_loss(0, 0), first_loss(0, 1), 1e-5);
  EXPECT_GT(std::abs(first_loss(0.5, 0) - first_loss(0.5, 1)), 1e-3);
  EXPECT_EQ(first_loss(0.5, 0), first_loss(0.5, 0));
}

TEST(Workload, EqualConfigsGiveEqualBitsAndSeedsDiffer) {
  const WorkloadOptions config{.model = "mlp", .replicas = 2};
  const auto first = easy_workload(config);
  const auto again = easy_workload(config);
  WorkloadOptions reseeded = config;
  reseeded.seed = 2;
  const auto other = easy_workload(reseeded);
  EXPECT_TRUE(std::ranges::equal(first->initial_parameters(), again->initial_parameters()));
  EXPECT_FALSE(std::ranges::equal(first->initial_parameters(), other->initial_parameters()));
  EXPECT_EQ(gradients(*first, 2, 1), gradients(*again, 2, 1));
}

TEST(Workload, LearnersStartAtTheInitialParametersOnMemoryOfTheirOwn) {
  const auto workload = easy_workload({.model = "softmax"});
  const auto a = workload->make_learner(0);
  const auto b = workload->make_learner(1);
  EXPECT_TRUE(std::ranges::equal(a->parameters(), workload->initial_parameters()));
  std::ranges::fill(a->parameters(), 0.0F);
  EXPECT_TRUE(std::ranges::equal(b->parameters(), workload->initial_parameters()));
  EXPECT_NEAR(a->compute_gradient(), std::log(10.0), 1e-5);
}

TEST(Workload, LearnsEasyImagesByPlainSteps) {
  const auto workload = easy_workload({.model = "mlp", .replicas = 1});
  const Evaluation before = workload->evaluate(workload->initial_parameters(), 100);
  const auto learner = workload->make_learner(0);
  for (int step = 0; step < 60; ++step) {
    learner->compute_gradient();
    for (std::size_t i = 0; i < learner->gradient().size(); ++i) {
      learner->parameters()[i] -= 0.05F * learner->gradient()[i];
    }
  }
  const Evaluation after = workload->evaluate(learner->parameters(), 100);
  EXPECT_LT(after.loss, before.loss / 4);
  EXPECT_GT(after.accuracy, 0.95);
}

// The mean of equal replicas' gradients is the gradient of one machine with all their samples.
TEST(Workload, JointLearnerSeesTheSamplesOfAllReplicas) {
  const auto workload = easy_workload({.model = "mlp", .replicas = 4, .batch = 8});
  const auto joint = workload->make_joint_learner();
  joint->compute_gradient();
  std::vector<double> mean(joint->gradient().size());
  for (std::size_t i = 0; i < 4; ++i) {
    const auto learner = workload->make_learner(i);
    learner->compute_gradient();
    for (std::size_t p = 0; p < mean.size(); ++p) mean[p] += learner->gradient()[p] / 4.0;
  }
  for (std::size_t p = 0; p < mean.size(); ++p) ASSERT_NEAR(joint->gradient()[p], mean[p], 1e-5);
}

TEST(Workload, EvaluationDependsNeitherOnThreadsNorOnTheSeed) {
  WorkloadOptions config{.model = "cnn", .threads = 1};
  const auto alone = easy_workload(config);
  config.threads = 3;
  config.seed = 9;
  const auto crowd = easy_workload(config);
  const auto parameters = alone->initial_parameters();
  for (const std::size_t samples : {1U, 60U, 100U}) {
    const Evaluation a = alone->evaluate(parameters, samples);
    const Evaluation b = crowd->evaluate(parameters, samples);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.accuracy, b.accuracy);
  }
  EXPECT_EQ(alone->evaluate(parameters, 100).loss, alone->evaluate(parameters, 1000).loss);
}

TEST(Workload, EvaluatesTheSamplesThatItIsAskedFor) {
  const auto workload = easy_workload({.model = "softmax"});
  std::vector<float> always_three(workload->initial_parameters().size());
  always_three[3] = 1;  // the bias of class 3: the layer nearest to the loss comes first, its bias
                        // before its weight
  ASSERT_EQ(workload->layers()[0].name, "out.bias");
  EXPECT_NEAR(workload->evaluate(always_three, 100).accuracy, 0.1, 1e-9);
}

TEST(Workload, KeepsOpenBlasToOneThread) {
  const auto workload = easy_workload({.model = "softmax"});
  std::jthread([&] { workload->make_learner(0)->compute_gradient(); }).join();
  EXPECT_EQ(open_blas_threads(), 1) << "0: OpenBLAS is not what the system's libblas stands for";
}

// On any number of cores: two threads on one core still share out the work as two.
TEST(Workload, AGradientHasTheSameBitsEachTimeWithTheSameNumberOfThreads) {
  WorkloadOptions config{.model = "cnn", .replicas = 1};
  const auto with = [&](std::size_t threads) {
    config.gradient_threads = threads;
    const auto workload = easy_workload(config);
    std::vector<float> gradient = gradients(*workload, 1, 1).front();
    EXPECT_EQ(open_blas_threads(), static_cast<int>(threads));
    EXPECT_EQ(at::get_num_threads(), static_cast<int>(threads));
    // Scoring beside it changes neither.
    (void)workload->evaluate(workload->initial_parameters(), 100);
    EXPECT_EQ(open_blas_threads(), static_cast<int>(threads));
    return gradient;
  };
  const std::vector<float> alone = with(1);
  const std::vector<float> two = with(2);
  EXPECT_EQ(with(2), two);
  EXPECT_EQ(with(1), alone);
  double apart = 0;
  for (std::size_t i = 0; i < alone.size(); ++i)
    apart = std::max(apart, std::abs(static_cast<double>(alone[i] - two[i])));
  EXPECT_LT(apart, 1e-4) << "more than rounding";
}

TEST(Workload, TrainsAGptOnAnyText) {
  const TestDirectory directory;
  Bytes text;
  for (int i = 0; i < 4000; ++i) text.push_back(static_cast<std::uint8_t>('a' + i % 13));
  const auto file = directory.write("text", text);
  auto made = TorchWorkload::make({.model = "gpt",
                                   .knobs = {{"layers", 1}, {"width", 32}, {"context", 16}},
                                   .data = {.kind = "text", .path = file},
                                   .replicas = 2,
                                   .batch = 8});
  ASSERT_TRUE(made.ok()) << made.error().message;
  TorchWorkload& workload = **made;
  EXPECT_EQ(gradients(workload, 2, 1), gradients(workload, 2, 2));
  const auto learner = workload.make_learner(0);
  const Evaluation before = workload.evaluate(learner->parameters(), 10);
  EXPECT_NEAR(before.loss, std::log(13.0), 0.2);
  for (int step = 0; step < 60; ++step) {
    learner->compute_gradient();
    for (std::size_t i = 0; i < learner->gradient().size(); ++i) {
      learner->parameters()[i] -= 0.5F * learner->gradient()[i];
    }
  }
  EXPECT_LT(workload.evaluate(learner->parameters(), 10).loss, before.loss / 2);
}

TEST(Workload, FindsTheDefaultImagesAndText) {
  const auto images = TorchWorkload::make({.model = "softmax"});
  ASSERT_TRUE(images.ok()) << images.error().message;
  EXPECT_EQ((*images)->test_samples(), 10000U);
  EXPECT_EQ((*images)->share_size(3), 15000U);
  const auto text = TorchWorkload::make({.model = "gpt", .data = {.kind = "text"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_GT((*text)->share_size(0), 10000U);
}

std::string complaint(const WorkloadOptions& config) {
  const auto made = make_workload(config);
  return made.ok() ? "ok" : made.error().message;
}

TEST(Workload, NamesWhatIsWrong) {
  const TestDirectory directory;
  const auto text = directory.write("text", Bytes(2000, 'a'));
  EXPECT_THAT(complaint({.data = {.kind = "text", .path = text}}),
              HasSubstr("model cnn needs images"));
  EXPECT_THAT(complaint({.model = "gpt"}), HasSubstr("model gpt needs text"));
  EXPECT_THAT(complaint({.data = {.kind = "svhn"}}), HasSubstr("got \"svhn\""));
  EXPECT_THAT(
      complaint(
          {.model = "gpt", .knobs = {{"context", 500}}, .data = {.kind = "text", .path = text}}),
      HasSubstr("shorter than a window of 500"));
  EXPECT_THAT(complaint({.batch = 0}), HasSubstr("at least 1"));
  write_easy_images(directory, 8, 20, 10);
  EXPECT_THAT(complaint({.data = {.kind = "mnist", .path = directory.path()}}),
              HasSubstr("at least 16 × 16"));
}

// A new learner that loads the place of another one computes the gradients that it would have.
TEST(Workload, ALearnerGoesOnFromASavedPlace) {
  const auto workload = easy_workload({.model = "mlp", .knobs = {{"dropout", 0.3}}});
  const auto whole = workload->make_learner(1);
  for (int i = 0; i < 5; ++i) whole->compute_gradient();
  longhaul::State state;
  whole->save(state);
  const auto resumed = workload->make_learner(1);
  const Status loaded = resumed->load(state_from_bytes(to_bytes(state)).value());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  for (int i = 0; i < 30; ++i) {  // beyond the end of a pass
    whole->compute_gradient();
    resumed->compute_gradient();
    ASSERT_EQ(copy_of(whole->gradient()), copy_of(resumed->gradient())) << i;
  }
}

TEST(Workload, ALearnerRefusesAPlaceThatIsNotOne) {
  const auto workload = easy_workload({.model = "softmax"});
  const auto learner = workload->make_learner(0);
  longhaul::State state;
  EXPECT_FALSE(learner->load(state).ok());
  learner->save(state);
  state.blobs["learner.generator"].pop_back();
  EXPECT_FALSE(learner->load(state).ok());
}

}  // namespace
}  // namespace longhaul::trainer
