// Training or test data as batches of tensors. Includes torch: only for .cpp files of the trainer
// and their tests.
#pragma once

#include <torch/data/example.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "trainer/data_set.h"

namespace longhaul::trainer {

// The samples of one gradient: `data` is the input of the model, `target` the answers (int64, one
// per sample or one per position).
using Batch = torch::data::Example<>;

// Samples to train or to test with.
// Constant after it was made; any number of threads may read.
struct Examples {
  std::vector<std::uint8_t> labels;  // one per sample
  std::function<Batch(std::span<const std::uint32_t> samples)> batch;

  [[nodiscard]] std::size_t count() const { return labels.size(); }
};

// `context` is the length of a window of text; images have none.
Result<LoadedData> load_data(const DataOptions& options, std::size_t context);

}  // namespace longhaul::trainer
