// The models by name, with their options; trainer/models.cpp holds the one table.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "trainer/data_set.h"
#include "trainer/random.h"

namespace longhaul::trainer {

class Model;  // trainer/model.h, which includes torch

// Options of a model by name.
using ModelKnobs = std::map<std::string, double>;

// One number that a model can be built with.
struct ModelOption {
  std::string_view name;
  double default_value;
  double least;
  double most;
  bool is_whole = true;
  std::string_view meaning;
};

// A model that the trainer can build.
struct ModelEntry {
  std::string_view name;
  std::string_view summary;
  bool reads_text;  // else images
  std::vector<ModelOption> options;
  // Gets every option. Initial values are drawn from `random`.
  std::shared_ptr<Model> (*make)(const InputShape&, const ModelKnobs&, Random& random);
};

std::span<const ModelEntry> model_table();

// An error names the models that there are.
Result<const ModelEntry*> find_model(const std::string& name);

// The given options, filled up with defaults; an error names what is unknown or out of range.
Result<ModelKnobs> complete_knobs(const ModelEntry& entry, const ModelKnobs& given);

}  // namespace longhaul::trainer
