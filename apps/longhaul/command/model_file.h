// A model as a file for others: a safetensors file with one named tensor per layer, and what it is
// of in its metadata.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/layer_table.h"

namespace longhaul::apps {

// A model and the run that it comes from. Unknown fields stay empty.
struct ExportedModel {
  std::vector<float> values;
  LayerTable layers;
  std::string scenario;
  std::string recipe;
  std::string seed;
  std::uint64_t step = 0;  // steps that it has done
};

// Without layers, one tensor `shared` with all parameters.
ByteBuffer model_bytes(const ExportedModel& model);

// The parameters of a model with these layers, in their order: from a file of named tensors, or
// from a checkpoint or snapshot of longhaul. An error names the layer, what was expected and what
// is there.
Result<std::vector<float>> read_model(const std::string& file, const LayerTable& layers);

// Layers in a State: what a snapshot and a checkpoint hold. Empty: they are not there.
void save_layers(const LayerTable& layers, State& state);
Result<LayerTable> saved_layers(const State& state, std::size_t elements);

}  // namespace longhaul::apps
