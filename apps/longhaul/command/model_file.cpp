#include "apps/longhaul/command/model_file.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/file.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul::apps {
namespace {

constexpr std::size_t kMostModelBytes = std::size_t{1} << 40U;
constexpr const char* kShared = "shared";  // in checkpoints and snapshots
constexpr const char* kSavedLayers = "layers";

using Shape = std::vector<std::int64_t>;

// Precondition: state_from_safetensors() accepted the file.
Shapes shapes_in(ByteView bytes) {
  const auto length = load_le<std::uint64_t>(bytes.data());
  const ByteView header = bytes.subspan(sizeof length, length);
  Shapes shapes;
  const auto json = nlohmann::json::parse(reinterpret_cast<const char*>(header.data()),
                                          reinterpret_cast<const char*>(header.data()) + length);
  for (const auto& [name, entry] : json.items()) {
    if (entry.contains("shape")) shapes[name] = entry.at("shape").get<Shape>();
  }
  return shapes;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t side : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(side);
  return text + ']';
}

Shape shape_of_layer(const Layer& layer) {
  return layer.shape.empty() ? Shape{static_cast<std::int64_t>(layer.count)} : layer.shape;
}

Error other_model(const std::string& what) {
  return Error{ErrorCode::kMismatch,
               what + "; is it a model of this scenario, with the same --set model.…?"};
}

Status take_layer(const State& state, const Shapes& shapes, const Layer& layer,
                  std::span<float> parameters) {
  const auto found = state.tensors.find(layer.name);
  const Shape expected = shape_of_layer(layer);
  if (found == state.tensors.end())
    return other_model("layer " + layer.name + ": expected a tensor of shape " +
                       shape_text(expected) + ", there is none");
  if (shapes.at(layer.name) != expected)
    return other_model("layer " + layer.name + ": expected shape " + shape_text(expected) +
                       ", got " + shape_text(shapes.at(layer.name)));
  std::ranges::copy(found->second, parameters.subspan(layer.offset, layer.count).begin());
  return Done{};
}

// One of longhaul's own files, where all parameters are one tensor.
Result<std::vector<float>> take_shared(const std::vector<float>& shared, std::size_t elements) {
  if (shared.size() == elements) return shared;
  return other_model("expected " + std::to_string(elements) + " parameters, got " +
                     std::to_string(shared.size()));
}

}  // namespace

ByteBuffer model_bytes(const ExportedModel& model) {
  State state;
  Shapes shapes;
  if (model.layers.empty()) state.tensors[kShared] = model.values;
  for (const Layer& layer : model.layers) {
    const std::span values = std::span(model.values).subspan(layer.offset, layer.count);
    state.tensors[layer.name].assign(values.begin(), values.end());
    shapes[layer.name] = shape_of_layer(layer);
  }
  state.values = {{"scenario", model.scenario},
                  {"recipe", model.recipe},
                  {"seed", model.seed},
                  {"step", model.step},
                  {"digest", digest_text(model.values)},
                  {"version", LONGHAUL_VERSION}};
  return to_bytes(state, shapes);
}

Result<std::vector<float>> read_model(const std::string& file, const LayerTable& layers) {
  const ByteBuffer bytes = LONGHAUL_TRY(read_file(file, kMostModelBytes));
  Result<State> state = state_from_safetensors(bytes);
  if (!state.ok())
    return Error{ErrorCode::kMismatch, file + ": not a safetensors file of float32 tensors (" +
                                           std::move(state).error().message + ')'};
  const std::size_t elements = layers.empty() ? 0 : layers.back().offset + layers.back().count;
  if (const auto shared = state->tensors.find(kShared); shared != state->tensors.end()) {
    Result<std::vector<float>> all = take_shared(shared->second, elements);
    if (!all.ok()) return std::move(all).error().within(file);
    return all;
  }
  const Shapes shapes = shapes_in(bytes);
  std::vector<float> parameters(elements);
  for (const Layer& layer : layers) {
    Status taken = take_layer(*state, shapes, layer, parameters);
    if (!taken.ok()) return std::move(taken).error().within(file);
  }
  for (const auto& [name, values] : state->tensors) {
    if (std::ranges::find(layers, name, &Layer::name) == layers.end())
      return other_model(std::string(file)
                             .append(": layer ")
                             .append(name)
                             .append(": this scenario's model has none of that name"));
  }
  return parameters;
}

void save_layers(const LayerTable& layers, State& state) {
  const std::string text = to_message(layers).SerializeAsString();
  const ByteView bytes = std::as_bytes(std::span(text));
  state.blobs[kSavedLayers].assign(bytes.begin(), bytes.end());
}

Result<LayerTable> saved_layers(const State& state, std::size_t elements) {
  const auto found = state.blobs.find(kSavedLayers);
  if (found == state.blobs.end()) return LayerTable{};
  v1::LayerTable message;
  if (!message.ParseFromArray(found->second.data(), static_cast<int>(found->second.size())))
    return Error{ErrorCode::kCorruptPayload, "layers: damaged"};
  return layers_from(message, elements);
}

}  // namespace longhaul::apps
