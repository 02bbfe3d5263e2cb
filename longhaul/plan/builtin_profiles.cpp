#include "longhaul/plan/builtin_profiles.h"

#include <algorithm>
#include <array>
#include <utility>

#include "longhaul/base/text.h"

namespace longhaul {
namespace {

using Layer = LayerProfile::Layer;

constexpr double kParameterBytes = 4;  // fp32

// `products`: multiplications of a sample with an addition each, in the forward pass. The backward
// pass has twice as many: for the gradient of the input and for that of the parameters.
Layer layer(std::string name, double parameters, double products, double samples) {
  const Seconds forward{2 * products * samples / kProfileOperationsPerSecond};
  return {.name = std::move(name),
          .forward = forward,
          .backward = 2 * forward,
          .bytes = kParameterBytes * parameters};
}

// `layers`: in forward order.
LayerProfile profile_of(std::vector<Layer> layers, std::size_t batch) {
  std::ranges::reverse(layers);
  return {.layers = std::move(layers), .batch = batch};
}

constexpr std::size_t kImages = 64;
constexpr double kClasses = 1000;

// A square kernel without bias, and the scale and shift of the batch normalisation behind it.
// `side`: of the output.
Layer convolution(std::string name, double in, double out, double kernel, double side) {
  const double weights = kernel * kernel * in * out;
  return layer(std::move(name), weights + 2 * out, weights * side * side, kImages);
}

// Two convolutions of 3 × 3. Returns the channels behind them.
double add_basic_block(std::vector<Layer>& layers, const std::string& name, double in, double width,
                       double side) {
  layers.push_back(convolution(name + "conv1", in, width, 3, side));
  layers.push_back(convolution(name + "conv2", width, width, 3, side));
  return width;
}

// 1 × 1, 3 × 3, 1 × 1. The first block of a later stage halves the side, in its middle.
double add_bottleneck(std::vector<Layer>& layers, const std::string& name, double in, double width,
                      double side) {
  constexpr double kExpansion = 4;
  const bool is_halving = in == 2 * width;  // 4 * width: inside a stage; width: the first one
  layers.push_back(convolution(name + "conv1", in, width, 1, is_halving ? 2 * side : side));
  layers.push_back(convolution(name + "conv2", width, width, 3, side));
  layers.push_back(convolution(name + "conv3", width, kExpansion * width, 1, side));
  return kExpansion * width;
}

// Residual networks (He et al., 2015) for images of 224 × 224. `blocks`: of each stage.
LayerProfile resnet(const std::array<int, 4>& blocks, bool has_bottlenecks) {
  std::vector<Layer> layers{convolution("conv1", 3, 64, 7, 112)};
  layers.front().backward /= 2;  // nobody needs the gradient of an image
  double channels = 64;
  double width = 64;
  double side = 56;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    for (int block = 0; block < blocks.at(stage); ++block) {
      const std::string name =
          "stage" + std::to_string(stage + 1) + ".block" + std::to_string(block + 1) + '.';
      const double in = channels;
      channels = has_bottlenecks ? add_bottleneck(layers, name, in, width, side)
                                 : add_basic_block(layers, name, in, width, side);
      if (in != channels) layers.push_back(convolution(name + "shortcut", in, channels, 1, side));
    }
    width *= 2;
    side /= 2;
  }
  const double weights = channels * kClasses;
  layers.push_back(layer("out", weights + kClasses, weights, kImages));
  return profile_of(std::move(layers), kImages);
}

// The numbers of a transformer, and the sequences of a step.
struct Transformer {
  double vocabulary = 0;
  double context = 0;  // tokens of a sequence
  double width = 0;
  double wide = 0;  // of the layer inside a block
  int blocks = 0;
  std::size_t sequences = 0;
};

// `products`: of a token. An embedding looks up and multiplies nothing.
Layer layer_of(const Transformer& model, std::string name, double parameters, double products) {
  return layer(std::move(name), parameters, products * model.context,
               static_cast<double>(model.sequences));
}

// A token attends to half of all tokens on average, once by their keys and once by their values.
// Gradients of queries, keys and values are ready after it, so it belongs to their layer.
double score_products(const Transformer& model) { return model.context * model.width; }

// GPT-2 (Radford et al., 2019): biases everywhere, learned positions, tied embeddings. The output
// side uses the parameters of "tokens" too. They count once, where they are used first: that
// gradient is the last one. The time of the output side is in "norm", whose gradient follows.
LayerProfile gpt2(const Transformer& model) {
  const double width = model.width;
  const double square = width * width;
  const double up = width * model.wide;
  std::vector<Layer> layers{
      layer_of(model, "tokens", model.vocabulary * width, 0),
      layer_of(model, "positions", model.context * width, 0),
  };
  for (int i = 0; i < model.blocks; ++i) {
    const std::string name = "block" + std::to_string(i + 1) + '.';
    layers.push_back(layer_of(model, name + "qkv", 2 * width + 3 * (square + width),
                              3 * square + score_products(model)));
    layers.push_back(layer_of(model, name + "merge", square + width, square));
    layers.push_back(layer_of(model, name + "up", 2 * width + up + model.wide, up));
    layers.push_back(layer_of(model, name + "down", up + width, up));
  }
  layers.push_back(layer_of(model, "norm", 2 * width, model.vocabulary * width));
  return profile_of(std::move(layers), model.sequences);
}

// Llama (Touvron et al., 2023): no biases, norms without shift, gated layers, rotary positions
// without parameters, an output layer of its own.
LayerProfile llama(const Transformer& model) {
  const double width = model.width;
  const double square = width * width;
  const double wide = width * model.wide;
  const double embedding = model.vocabulary * width;
  std::vector<Layer> layers{layer_of(model, "tokens", embedding, 0)};
  for (int i = 0; i < model.blocks; ++i) {
    const std::string name = "block" + std::to_string(i + 1) + '.';
    layers.push_back(
        layer_of(model, name + "qkv", width + 3 * square, 3 * square + score_products(model)));
    layers.push_back(layer_of(model, name + "merge", square, square));
    layers.push_back(layer_of(model, name + "gate+up", width + 2 * wide, 2 * wide));
    layers.push_back(layer_of(model, name + "down", wide, wide));
  }
  layers.push_back(layer_of(model, "out", width + embedding, embedding));
  return profile_of(std::move(layers), model.sequences);
}

LayerProfile resnet_18() { return resnet({2, 2, 2, 2}, false); }
LayerProfile resnet_50() { return resnet({3, 4, 6, 3}, true); }

LayerProfile gpt2_124m() {
  return gpt2({.vocabulary = 50'257,
               .context = 1024,
               .width = 768,
               .wide = 4 * 768,
               .blocks = 12,
               .sequences = 8});
}

LayerProfile llama_175m() {
  return llama({.vocabulary = 32'000,
                .context = 1024,
                .width = 896,
                .wide = 2464,
                .blocks = 12,
                .sequences = 8});
}

LayerProfile llama_1_3b() {
  return llama({.vocabulary = 32'000,
                .context = 2048,
                .width = 2048,
                .wide = 5504,
                .blocks = 24,
                .sequences = 4});
}

constexpr std::array<std::pair<std::string_view, LayerProfile (*)()>, 5> kProfiles{{
    {"resnet-18", resnet_18},
    {"resnet-50", resnet_50},
    {"gpt2-124m", gpt2_124m},
    {"llama-175m", llama_175m},
    {"llama-1.3b", llama_1_3b},
}};

}  // namespace

std::vector<std::string> builtin_profile_names() {
  std::vector<std::string> names;
  names.reserve(kProfiles.size());
  for (const auto& [name, make] : kProfiles) names.emplace_back(name);
  return names;
}

Result<LayerProfile> builtin_profile(std::string_view name) {
  for (const auto& [known, make] : kProfiles)
    if (known == name) return make();
  const std::vector<std::string> names = builtin_profile_names();
  const std::string meant = did_you_mean(name, names);
  return Error{ErrorCode::kInvalidArgument,
               "no built-in profile is called \"" + std::string(name) + '"' +
                   (meant.empty() ? "; they are " + joined(names) : meant)};
}

}  // namespace longhaul
