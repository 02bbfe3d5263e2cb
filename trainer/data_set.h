// A data set as a model sees it: the shape of a sample, and the samples to train with and to test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace longhaul::trainer {

// The shape of a model's inputs, and the number of answers.
// Images have channels. Text has none, and its classes are the vocabulary.
struct InputShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;

  [[nodiscard]] bool is_text() const { return channels == 0; }
  // Counts all channels.
  [[nodiscard]] std::int64_t pixels() const { return channels * height * width; }
  bool operator==(const InputShape&) const = default;
};

struct Examples;  // trainer/examples.h, which includes torch

// A data set in memory, with its split.
struct LoadedData {
  InputShape input;
  std::shared_ptr<const Examples> train;  // shared: learners may outlive the workload
  std::shared_ptr<const Examples> test;
  std::size_t test_batch = 1;  // samples that are evaluated at once
};

}  // namespace longhaul::trainer
