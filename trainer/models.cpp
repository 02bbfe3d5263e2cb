// The models, and the one table of them.
#include <cmath>
#include <utility>

#include "trainer/model.h"

namespace longhaul::trainer {
namespace {

using torch::Tensor;

std::int64_t whole(const ModelKnobs& options, const char* name) {
  return static_cast<std::int64_t>(options.at(name));
}

class Mlp : public Model {
 public:
  Mlp(const InputShape& input, const ModelKnobs& options, Random& random)
      : Model(random), dropout_(options.at("dropout")) {
    std::int64_t inputs = input.pixels();
    for (std::int64_t i = 0; i < whole(options, "layers"); ++i) {
      hidden_.push_back(
          linear_layer("hidden" + std::to_string(i + 1), inputs, whole(options, "width")));
      inputs = whole(options, "width");
    }
    out_ = linear_layer("out", inputs, input.classes);
  }

  Tensor forward(const Tensor& input) override {
    Tensor x = input.flatten(1);
    for (const Weights& layer : hidden_) {
      x = dropout(torch::relu(torch::linear(x, layer.weight, layer.bias)), dropout_);
    }
    return torch::linear(x, out_.weight, out_.bias);
  }

 private:
  double dropout_;
  std::vector<Weights> hidden_;
  Weights out_;
};

// Two 5 × 5 convolutions, each followed by 2 × 2 pooling, and two full layers.
class Cnn : public Model {
 public:
  Cnn(const InputShape& input, const ModelKnobs& options, Random& random) : Model(random) {
    const std::int64_t width = whole(options, "width");
    const auto side_after = [](std::int64_t side) { return ((side - 4) / 2 - 4) / 2; };
    const std::int64_t flat = 2 * width * side_after(input.height) * side_after(input.width);
    conv1_ = conv_layer("conv1", input.channels, width, 5);
    conv2_ = conv_layer("conv2", width, 2 * width, 5);
    hidden_ = linear_layer("hidden", flat, whole(options, "hidden"));
    out_ = linear_layer("out", whole(options, "hidden"), input.classes);
  }

  // Pooling comes before relu: the same values, and relu has a quarter of the work.
  Tensor forward(const Tensor& input) override {
    Tensor x = torch::conv2d(input, conv1_.weight, conv1_.bias);
    x = torch::relu(torch::max_pool2d(x, 2));
    x = torch::conv2d(x, conv2_.weight, conv2_.bias);
    x = torch::relu(torch::max_pool2d(x, 2)).flatten(1);
    x = torch::relu(torch::linear(x, hidden_.weight, hidden_.bias));
    return torch::linear(x, out_.weight, out_.bias);
  }

 private:
  Weights conv1_;
  Weights conv2_;
  Weights hidden_;
  Weights out_;
};

// Three stages of residual blocks at full, half and quarter resolution (He et al. 2015,
// section 4.2), with group norm instead of batch norm: no statistics that differ between replicas.
class ResNet : public Model {
 public:
  ResNet(const InputShape& input, const ModelKnobs& options, Random& random)
      : Model(random), groups_(whole(options, "groups")) {
    std::int64_t width = whole(options, "width");
    stem_ = conv3x3("stem", input.channels, width);
    stem_norm_ = norm_layer("stem_norm", width);
    for (std::int64_t stage = 0; stage < 3; ++stage) {
      for (std::int64_t i = 0; i < whole(options, "blocks"); ++i) {
        const std::int64_t outputs = whole(options, "width") << stage;
        const std::string name =
            "stage" + std::to_string(stage + 1) + ".block" + std::to_string(i + 1);
        add_block(name, width, outputs);
        width = outputs;
      }
    }
    out_ = linear_layer("out", width, input.classes);
  }

  Tensor forward(const Tensor& input) override {
    Tensor x = torch::relu(norm(torch::conv2d(input, stem_, {}, 1, 1), stem_norm_));
    for (const Block& block : blocks_) x = forward_block(block, x);
    return torch::linear(x.mean({2, 3}), out_.weight, out_.bias);
  }

 private:
  struct Block {
    Tensor conv1;
    Weights norm1;
    Tensor conv2;
    Weights norm2;
    Tensor shortcut;  // 1 × 1, where the width changes
    std::int64_t stride;
  };

  Tensor conv3x3(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    const double deviation = std::sqrt(2 / static_cast<double>(outputs * 9));
    return normal(name + ".weight", {outputs, inputs, 3, 3}, deviation);
  }

  void add_block(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    Block block;
    block.stride = inputs == outputs ? 1 : 2;
    if (inputs != outputs) {
      const double deviation = std::sqrt(1 / static_cast<double>(inputs));
      block.shortcut = normal(name + ".shortcut.weight", {outputs, inputs, 1, 1}, deviation);
    }
    block.conv1 = conv3x3(name + ".conv1", inputs, outputs);
    block.norm1 = norm_layer(name + ".norm1", outputs);
    block.conv2 = conv3x3(name + ".conv2", outputs, outputs);
    block.norm2 = norm_layer(name + ".norm2", outputs);
    blocks_.push_back(std::move(block));
  }

  Tensor norm(const Tensor& input, const Weights& layer) const {
    return torch::group_norm(input, groups_, layer.weight, layer.bias);
  }

  [[nodiscard]] Tensor forward_block(const Block& block, const Tensor& input) const {
    const Tensor straight =
        block.shortcut.defined() ? torch::conv2d(input, block.shortcut, {}, block.stride) : input;
    Tensor x = torch::conv2d(input, block.conv1, {}, block.stride, 1);
    x = torch::conv2d(torch::relu(norm(x, block.norm1)), block.conv2, {}, 1, 1);
    return torch::relu(norm(x, block.norm2) + straight);
  }

  std::int64_t groups_;
  Tensor stem_;
  Weights stem_norm_;
  std::vector<Block> blocks_;
  Weights out_;
};

// A decoder-only transformer with norms before the blocks (GPT-2); the output layer is the token
// embedding again.
class Gpt : public Model {
 public:
  Gpt(const InputShape& input, const ModelKnobs& options, Random& random)
      : Model(random), heads_(whole(options, "heads")), dropout_(options.at("dropout")) {
    const std::int64_t width = whole(options, "width");
    const std::int64_t context = whole(options, "context");
    tokens_ = normal("tokens", {input.classes, width}, 0.02);
    positions_ = normal("positions", {context, width}, 0.02);
    for (std::int64_t i = 0; i < whole(options, "layers"); ++i) {
      add_block("block" + std::to_string(i + 1), width, whole(options, "layers"));
    }
    norm_ = norm_layer("norm", width);
    future_ = torch::ones({context, context}, torch::kBool).triu(1);
  }

  Tensor forward(const Tensor& input) override {
    const std::int64_t length = input.size(1);
    Tensor x = torch::embedding(tokens_, input) + positions_.narrow(0, 0, length);
    x = dropout(x, dropout_);
    for (const Block& block : blocks_) {
      x = x + dropout(attend(block, normed(x, block.norm1)), dropout_);
      const Tensor wide = torch::linear(normed(x, block.norm2), block.up.weight, block.up.bias);
      x = x +
          dropout(torch::linear(torch::gelu(wide), block.down.weight, block.down.bias), dropout_);
    }
    return torch::linear(normed(x, norm_), tokens_);
  }

 private:
  struct Block {
    Weights norm1;
    Weights qkv;
    Weights merge;
    Weights norm2;
    Weights up;
    Weights down;
  };

  Weights plain(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                double deviation) {
    return {normal(name + ".weight", {outputs, inputs}, deviation),
            constant(name + ".bias", {outputs}, 0)};
  }

  // The more blocks there are, the smaller their first contributions to the residual stream.
  void add_block(const std::string& name, std::int64_t width, std::int64_t layers) {
    const double into_stream = 0.02 / std::sqrt(2 * static_cast<double>(layers));
    Block block;
    block.norm1 = norm_layer(name + ".norm1", width);
    block.qkv = plain(name + ".qkv", width, 3 * width, 0.02);
    block.merge = plain(name + ".merge", width, width, into_stream);
    block.norm2 = norm_layer(name + ".norm2", width);
    block.up = plain(name + ".up", width, 4 * width, 0.02);
    block.down = plain(name + ".down", 4 * width, width, into_stream);
    blocks_.push_back(std::move(block));
  }

  static Tensor normed(const Tensor& input, const Weights& layer) {
    return torch::layer_norm(input, {input.size(-1)}, layer.weight, layer.bias);
  }

  [[nodiscard]] Tensor attend(const Block& block, const Tensor& input) const {
    const std::int64_t batch = input.size(0);
    const std::int64_t length = input.size(1);
    const std::int64_t depth = input.size(2) / heads_;
    const Tensor qkv = torch::linear(input, block.qkv.weight, block.qkv.bias)
                           .view({batch, length, 3, heads_, depth})
                           .permute({2, 0, 3, 1, 4});
    const Tensor scores =
        torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(depth));
    const Tensor hidden = future_.narrow(0, 0, length).narrow(1, 0, length);
    const Tensor shares = torch::softmax(scores.masked_fill(hidden, -1e9), -1);
    const Tensor mixed = torch::matmul(shares, qkv[2]).transpose(1, 2).reshape(input.sizes());
    return torch::linear(mixed, block.merge.weight, block.merge.bias);
  }

  std::int64_t heads_;
  double dropout_;
  Tensor tokens_;
  Tensor positions_;
  std::vector<Block> blocks_;
  Weights norm_;
  Tensor future_;  // true where a position would see its future
};

template <typename M>
std::shared_ptr<Model> make(const InputShape& input, const ModelKnobs& options, Random& random) {
  return std::make_shared<M>(input, options, random);
}

// No hidden layer is left.
std::shared_ptr<Model> make_softmax(const InputShape& input, const ModelKnobs& /*none*/,
                                    Random& random) {
  return make<Mlp>(input, {{"layers", 0}, {"width", 0}, {"dropout", 0}}, random);
}

constexpr ModelOption kDropout{"dropout", 0, 0, 0.9, false, "share of activations left out"};

}  // namespace

std::span<const ModelEntry> model_table() {
  static const std::vector<ModelEntry> entries{
      {.name = "softmax",
       .summary = "one linear layer",
       .reads_text = false,
       .options = {},
       .make = make_softmax},
      {.name = "mlp",
       .summary = "full layers with relu",
       .reads_text = false,
       .options = {{"layers", 2, 1, 64, true, "hidden layers"},
                   {"width", 128, 1, 65536, true, "units of a hidden layer"},
                   kDropout},
       .make = make<Mlp>},
      {.name = "cnn",
       .summary = "two 5 x 5 convolutions with pooling, two full layers",
       .reads_text = false,
       .options = {{"width", 16, 1, 1024, true,
                    "channels of the first convolution, half of the second's"},
                   {"hidden", 168, 1, 65536, true, "units of the hidden full layer"}},
       .make = make<Cnn>},
      {.name = "resnet",
       .summary = "three stages of residual blocks with group norm",
       .reads_text = false,
       .options = {{"blocks", 1, 1, 64, true, "residual blocks of a stage"},
                   {"width", 16, 1, 1024, true,
                    "channels of the first stage; the next have 2 and 4 times as many"},
                   {"groups", 4, 1, 1024, true, "groups of a norm; divides width"}},
       .make = make<ResNet>},
      {.name = "gpt",
       .summary = "decoder-only transformer with tied embedding",
       .reads_text = true,
       .options = {{"layers", 2, 1, 256, true, "transformer blocks"},
                   {"width", 128, 1, 65536, true, "units of the residual stream"},
                   {"heads", 4, 1, 1024, true, "attention heads; divides width"},
                   {"context", 64, 1, 65536, true, "characters of a sample"},
                   kDropout},
       .make = make<Gpt>},
  };
  return entries;
}

}  // namespace longhaul::trainer
