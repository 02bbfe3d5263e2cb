// A model of model_table.h and a data set, split over replicas: what the engine and the lab train
// with libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/workers.h"
#include "longhaul/job/scenario.h"
#include "longhaul/sync/learner.h"
#include "trainer/batch_sampler.h"
#include "trainer/data_set.h"
#include "trainer/model_table.h"
#include "trainer/split.h"

namespace longhaul::trainer {

// Model, data and seed of a workload.
struct WorkloadOptions {
  std::string model = "cnn";
  ModelKnobs knobs{};  // those that differ from the default
  DataOptions data;
  std::size_t replicas = 4;
  std::size_t batch = 32;  // samples of one gradient; of text, windows of the model's `context`
  // Of initial parameters, split and batches. The test order is the same for all seeds.
  std::uint64_t seed = 1;
  std::size_t threads = 2;           // of evaluate(); the result does not depend on it
  std::size_t gradient_threads = 1;  // of one gradient: its bits, and scores, depend on it
};

// The model and the data of a scenario, with one thread for all.
WorkloadOptions workload_options(const Scenario& scenario, std::uint64_t seed);

// A torch model and its data.
// Everything is a function of the options: equal options give equal bits, whatever runs beside
// them. Workloads of one process have the same gradient_threads.
class TorchWorkload final : public Workload {
 public:
  // Loads the data. An error is one line: what is missing or damaged, or which setting is wrong.
  static Result<std::unique_ptr<TorchWorkload>> make(const WorkloadOptions& options);

  [[nodiscard]] const LayerTable& layers() const override { return layers_; }
  [[nodiscard]] std::span<const float> initial_parameters() const override { return initial_; }

  // A learner shares the (constant) data and may outlive the workload.
  [[nodiscard]] std::unique_ptr<Learner> make_learner(std::size_t index) override;

  // One machine instead of all replicas: each of its batches is all of theirs together.
  [[nodiscard]] std::unique_ptr<Learner> make_joint_learner();

  // In batches of a fixed size; sums are taken in the order of batches. One caller at a time.
  [[nodiscard]] Evaluation evaluate(std::span<const float> parameters,
                                    std::size_t samples) override;

  [[nodiscard]] std::size_t test_samples() const { return order_.size(); }
  // Samples of replica `index`.
  [[nodiscard]] std::size_t share_size(std::size_t index) const { return shares_.at(index).size(); }

 private:
  TorchWorkload(WorkloadOptions options, const ModelEntry& entry, ModelKnobs knobs, LoadedData data,
                Shares shares);
  // A copy of the model on an arena of its own, at its initial parameters.
  [[nodiscard]] std::shared_ptr<Model> copy() const;
  [[nodiscard]] BatchSampler sampler(std::size_t replica) const;
  [[nodiscard]] std::unique_ptr<Learner> learner(std::vector<BatchSampler> samplers,
                                                 std::uint64_t generator) const;
  // For each batch, sums over its decisions in place of means; their number is `samples`.
  std::vector<Evaluation> evaluate_batches(std::size_t samples);

  WorkloadOptions options_;
  const ModelEntry& entry_;
  ModelKnobs knobs_;
  LoadedData data_;
  Shares shares_;
  std::vector<std::uint32_t> order_;  // of test samples
  LayerTable layers_;
  std::vector<float> initial_;
  std::vector<std::shared_ptr<Model>> evaluators_;  // one per thread of workers
  Workers workers_;
};

Result<std::unique_ptr<Workload>> make_workload(const WorkloadOptions& options);

}  // namespace longhaul::trainer
