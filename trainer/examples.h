// Training or test data as batches of tensors. Includes torch: only for .cpp files of the trainer
// and their tests.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "longhaul/base/result.h"
#include "trainer/model_table.h"
#include "trainer/workload.h"

namespace longhaul::trainer {

struct Batch {
  torch::Tensor input;
  torch::Tensor answers;  // int64, one per sample or one per position
};

// Constant after it was made; any number of threads may read.
class Examples {
 public:
  virtual ~Examples() = default;
  [[nodiscard]] virtual std::span<const std::uint8_t> labels() const = 0;  // one per sample
  [[nodiscard]] virtual Batch batch(std::span<const std::uint32_t> samples) const = 0;
  [[nodiscard]] std::size_t count() const { return labels().size(); }
};

struct LoadedData {
  ModelInput input;
  std::shared_ptr<const Examples> train;  // shared: learners may outlive the workload
  std::shared_ptr<const Examples> test;
  std::size_t test_batch;  // samples that are evaluated at once
};

// `context` is the length of a window of text; images have none.
Result<LoadedData> load_data(const DataConfig& config, std::size_t context);

}  // namespace longhaul::trainer
