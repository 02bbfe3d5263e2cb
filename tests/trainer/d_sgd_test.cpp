// D-SGD with n replicas of batch b is SGD on one machine with batch n·b, on a real model.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/sync/cluster.h"
#include "tests/trainer/data_files.h"
#include "trainer/workload.h"

namespace longhaul::trainer {
namespace {

constexpr std::size_t kReplicas = 4;

double relative_distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += apart * apart;
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / size);
}

void expect_same_path(const std::string& model, const ModelKnobs& knobs, OptimizerKind kind,
                      double lr) {
  const TestDirectory directory;
  write_easy_images(directory, 16, 400, 100);
  auto made = TorchWorkload::make({.model = model,
                                   .knobs = knobs,
                                   .data = {.kind = "mnist", .path = directory.path()},
                                   .replicas = kReplicas,
                                   .batch = 8});
  ASSERT_TRUE(made.ok()) << made.error().message;
  TorchWorkload& workload = **made;
  EngineOptions options;
  options.recipe = find_recipe("d-sgd").value();
  options.optimizer.kind = kind;
  options.lr.peak = lr;
  options.layers = workload.layers();
  testing::Cluster cluster(options, workload, std::vector<float>(kReplicas, 1.0F));
  const auto joint = workload.make_joint_learner();
  Optimizer optimizer(options.optimizer, joint->parameters().size());
  for (int step = 0; step < 20; ++step) {
    cluster.step();
    joint->compute_gradient();
    optimizer.step(0, joint->parameters(), joint->gradient(), lr);
    ASSERT_LT(relative_distance(cluster.replicas[0].engine->shared(), joint->parameters()), 1e-4)
        << "after step " << step;
  }
  EXPECT_GT(relative_distance(joint->parameters(), workload.initial_parameters()), 0.01)
      << "nothing was learned, so nothing was compared";
}

TEST(DSgd, OfACnnFollowsOneMachineWithTheWholeBatch) {
  expect_same_path("cnn", {}, OptimizerKind::kMomentum, 0.05);
}

// At 0.05 this model is so unstable that it magnifies rounding ten thousand times in 20 steps.
TEST(DSgd, OfAResidualNetworkFollowsOneMachineWithTheWholeBatch) {
  expect_same_path("resnet", {{"width", 8}}, OptimizerKind::kNesterov, 0.01);
}

}  // namespace
}  // namespace longhaul::trainer
