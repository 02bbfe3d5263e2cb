// A model of model_table.h and a data set, split over replicas: what the engine and the lab train
// with libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "longhaul/base/result.h"
#include "longhaul/sync/learner.h"
#include "trainer/model_table.h"
#include "trainer/split.h"
#include "trainer/text_data.h"

namespace longhaul::trainer {

struct DataConfig {
  std::string kind = "fashion-mnist";  // or "mnist", "cifar-10", "text"
  std::filesystem::path path;  // directory of the images or the text file; empty: the usual places
};

struct WorkloadOptions {
  ModelConfig model;
  DataConfig data;
  SplitOptions split;
  std::size_t replicas = 4;
  std::size_t batch = 32;  // samples of one gradient; of text, windows of the model's `context`
  std::uint64_t seed =
      1;  // of initial parameters, split and batches; the test order is the same for all seeds
  std::size_t threads = 2;           // of evaluate(); the result does not depend on it
  std::size_t gradient_threads = 1;  // of one gradient: its bits, and scores, depend on it
};

// Everything is a function of the config: equal configs give equal bits, whatever runs beside them.
// Workloads of one process have the same gradient_threads.
class TorchWorkload final : public Workload {
 public:
  // Loads the data. An error is one line: what is missing or damaged, or which setting is wrong.
  static Result<std::unique_ptr<TorchWorkload>> make(const WorkloadOptions& config);
  ~TorchWorkload() override;

  [[nodiscard]] const LayerTable& layers() const override;
  [[nodiscard]] std::span<const float> initial_parameters() const override;

  // A learner shares the (constant) data and may outlive the workload.
  [[nodiscard]] std::unique_ptr<Learner> make_learner(std::size_t index) override;

  // One machine instead of all replicas: each of its batches is all of theirs together.
  [[nodiscard]] std::unique_ptr<Learner> make_joint_learner();

  // In batches of a fixed size; sums are taken in the order of batches. One caller at a time.
  [[nodiscard]] Evaluation evaluate(std::span<const float> parameters,
                                    std::size_t samples) override;

  [[nodiscard]] std::size_t test_samples() const;
  [[nodiscard]] std::size_t share_size(std::size_t index) const;  // samples of replica `index`

 private:
  struct State;
  explicit TorchWorkload(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

Result<std::unique_ptr<Workload>> make_workload(const WorkloadOptions& config);

}  // namespace longhaul::trainer
