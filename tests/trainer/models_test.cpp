#include "trainer/model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "trainer/threads.h"

namespace longhaul::trainer {
namespace {

std::shared_ptr<Model> make_model(const std::string& name, const ModelKnobs& given,
                                  const InputShape& input) {
  use_threads(1);
  const ModelEntry& entry = *find_model(name).value();
  Random random(1, Draws::kInitialParameters);
  return entry.make(input, complete_knobs(entry, given).value(), random);
}

InputShape input_for(const ModelEntry& entry) {
  if (entry.reads_text) return {.channels = 0, .classes = 75};
  if (entry.name == "resnet") return {.channels = 3, .height = 32, .width = 32};
  return {};
}

torch::Tensor some_input(const InputShape& input) {
  if (input.is_text()) return torch::arange(2 * 64).remainder(75).view({2, 64});
  const auto count = 2 * input.pixels();
  return torch::arange(count).mul(0.37).sin().view({2, input.channels, input.height, input.width});
}

std::size_t parameters_of(const std::string& name) {
  const auto model = make_model(name, {}, input_for(*find_model(name).value()));
  return Arena(model->parameters()).parameters().size();
}

TEST(Models, HaveTheDocumentedNumberOfParameters) {
  EXPECT_EQ(parameters_of("softmax"), 7850U);
  EXPECT_EQ(parameters_of("mlp"), 118282U);
  EXPECT_EQ(parameters_of("cnn"), 101122U);
  EXPECT_EQ(parameters_of("resnet"), 77850U);
  EXPECT_EQ(parameters_of("gpt"), 75U * 128 + 64 * 128 + 2 * (12 * 128 * 128 + 13 * 128) + 256);
}

TEST(Models, LayersCoverTheArenaExactly) {
  for (const ModelEntry& entry : model_table()) {
    const auto model = make_model(std::string(entry.name), {}, input_for(entry));
    Arena arena(model->parameters());
    std::size_t end = 0;
    for (const Layer& layer : arena.layers()) {
      EXPECT_EQ(layer.offset, end) << layer.name;
      const auto product = std::accumulate(layer.shape.begin(), layer.shape.end(), std::int64_t{1},
                                           std::multiplies<>());
      EXPECT_EQ(layer.count, static_cast<std::size_t>(product)) << layer.name;
      end += layer.count;
    }
    EXPECT_EQ(end, arena.parameters().size());
  }
}

TEST(Models, EveryParameterGetsAGradient) {
  for (const ModelEntry& entry : model_table()) {
    const InputShape input = input_for(entry);
    const auto model = make_model(std::string(entry.name), {}, input);
    Arena arena(model->parameters());
    const torch::Tensor logits = model->forward(some_input(input));
    EXPECT_EQ(logits.size(-1), input.classes);
    torch::log_softmax(logits, -1).select(-1, 1).mean().backward();
    arena.check_views();
    for (const auto& parameter : model->parameters()) {
      EXPECT_GT(parameter->grad().abs().sum().item<double>(), 0)
          << entry.name << ' ' << parameter.key();
    }
  }
}

TEST(Models, GptUsesItsEmbeddingTwiceAndHoldsItOnce) {
  const auto model = make_model("gpt", {}, {.channels = 0, .classes = 75});
  Arena arena(model->parameters());
  EXPECT_EQ(arena.layers().back().name, "tokens");
  EXPECT_EQ(std::ranges::count(arena.layers(), (std::vector<std::int64_t>{75, 128}), &Layer::shape),
            1);
  // Token 70 is never read, so its row gets a gradient only as an output.
  model->forward(torch::zeros({1, 64}, torch::kInt64)).select(-1, 70).sum().backward();
  EXPECT_GT(model->parameters()[0].value().grad()[70].abs().sum().item<double>(), 0);
}

TEST(Models, GptDoesNotSeeTheFuture) {
  const auto model = make_model("gpt", {}, {.channels = 0, .classes = 75});
  const torch::NoGradGuard no_grad;
  const torch::Tensor text = torch::arange(64).view({1, 64});
  torch::Tensor changed = text.clone();
  changed[0][40] = 0;
  const torch::Tensor before = model->forward(text);
  const torch::Tensor after = model->forward(changed);
  EXPECT_TRUE(before.narrow(1, 0, 40).equal(after.narrow(1, 0, 40)));
  EXPECT_FALSE(before[0][40].equal(after[0][40]));
}

TEST(Models, DropoutDrawsFromItsOwnGeneratorAndOnlyWithOne) {
  const auto model = make_model("mlp", {{"dropout", 0.5}}, {});
  const torch::Tensor input = some_input({});
  const torch::Tensor without = model->forward(input);
  EXPECT_TRUE(without.equal(model->forward(input)));
  const auto with_seed = [&](std::uint64_t seed) {
    model->set_generator(at::make_generator<at::CPUGeneratorImpl>(seed));
    return model->forward(input);
  };
  EXPECT_TRUE(with_seed(1).equal(with_seed(1)));
  EXPECT_FALSE(with_seed(1).equal(with_seed(2)));
  EXPECT_FALSE(with_seed(1).equal(without));
}

double loss_of(Model& model, const torch::Tensor& input, const torch::Tensor& answers) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor logits = model.forward(input).to(torch::kFloat64);
  return torch::nll_loss(torch::log_softmax(logits, 1), answers).item<double>();
}

// Each parameter is moved a little both ways; the difference of the losses is the gradient.
TEST(Models, GradientIsTheSlopeOfTheLoss) {
  const InputShape input{.channels = 1, .height = 3, .width = 3, .classes = 4};
  const auto model = make_model("mlp", {{"layers", 1}, {"width", 6}}, input);
  Arena arena(model->parameters());
  const torch::Tensor images = torch::arange(5 * 9).mul(0.7).sin().view({5, 1, 3, 3});
  const torch::Tensor answers = torch::arange(5).remainder(4);
  torch::nll_loss(torch::log_softmax(model->forward(images), 1), answers).backward();
  constexpr float kMove = 1e-3F;
  for (std::size_t i = 0; i < arena.parameters().size(); ++i) {
    float& parameter = arena.parameters()[i];
    const float before = parameter;
    parameter = before + kMove;
    const double above = loss_of(*model, images, answers);
    const double moved_up = parameter;
    parameter = before - kMove;
    const double below = loss_of(*model, images, answers);
    const double slope = (above - below) / (moved_up - parameter);
    parameter = before;
    EXPECT_NEAR(arena.gradient()[i], slope, 1e-3) << i;
  }
}

}  // namespace
}  // namespace longhaul::trainer
