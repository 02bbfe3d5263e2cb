// The models by name, with their options; trainer/models.cpp holds the one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "trainer/random.h"

namespace longhaul::trainer {

class Model;  // trainer/models.h, which includes torch

using ModelKnobs = std::map<std::string, double>;

struct ModelConfig {
  std::string name = "cnn";
  ModelKnobs options;  // those that differ from the default
};

enum class InputKind : std::uint8_t { kImages, kText };

// The input that the data set feeds in, and the number of answers.
struct ModelInput {
  InputKind kind = InputKind::kImages;
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;  // for text: size of the vocabulary
};

struct ModelOption {
  std::string_view name;
  double default_value;
  double least;
  double most;
  bool is_whole = true;
  std::string_view meaning;
};

struct ModelEntry {
  std::string_view name;
  std::string_view summary;
  InputKind input;
  std::vector<ModelOption> options;
  // Gets every option. Initial values are drawn from `random`.
  std::shared_ptr<Model> (*make)(const ModelInput&, const ModelKnobs&, Random& random);
};

std::span<const ModelEntry> model_table();

// The row of `config`, and its options filled up with defaults; an error names what is unknown or
// out of range.
struct ChosenModel {
  const ModelEntry* entry;
  ModelKnobs options;
};
Result<ChosenModel> choose_model(const ModelConfig& config);

}  // namespace longhaul::trainer
