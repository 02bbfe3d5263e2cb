#include "trainer/examples.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "trainer/image_data.h"
#include "trainer/text_data.h"

namespace longhaul::trainer {
namespace {

// The input of the model for each pixel value, by channel.
using Scale = std::array<std::array<float, 256>, 3>;

Scale scale_of(const ImageData& data) {
  Scale scale{};
  const auto channels = static_cast<std::size_t>(data.train.shape.channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t pixel = 0; pixel < 256; ++pixel) {
      scale[channel][pixel] =
          (static_cast<float>(pixel) / 255.0F - data.mean[channel]) / data.deviation[channel];
    }
  }
  return scale;
}

Batch batch_of(const Images& images, const Scale& scale, std::span<const std::uint32_t> samples) {
  const InputShape& shape = images.shape;
  const auto size = static_cast<std::int64_t>(samples.size());
  Batch batch{torch::empty({size, shape.channels, shape.height, shape.width}, torch::kFloat32),
              torch::empty({size}, torch::kInt64)};
  float* out = batch.data.data_ptr<float>();
  std::int64_t* answers = batch.target.data_ptr<std::int64_t>();
  const std::int64_t plane = shape.height * shape.width;
  for (const std::uint32_t sample : samples) {
    const std::uint8_t* in = images.pixels.data() + sample * shape.pixels();
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(shape.channels); ++channel) {
      const auto& scaled = scale[channel];
      out = std::transform(in, in + plane, out, [&](std::uint8_t pixel) { return scaled[pixel]; });
      in += plane;
    }
    *answers++ = images.labels[sample];
  }
  return batch;
}

std::shared_ptr<const Examples> image_examples(Images images, const Scale& scale) {
  std::vector<std::uint8_t> labels = images.labels;
  return std::make_shared<Examples>(Examples{
      .labels = std::move(labels), .batch = [images = std::move(images), scale](auto samples) {
        return batch_of(images, scale, samples);
      }});
}

Batch batch_of(const std::vector<std::uint16_t>& tokens, std::size_t context,
               std::span<const std::uint32_t> samples) {
  const auto rows = static_cast<std::int64_t>(samples.size());
  const auto columns = static_cast<std::int64_t>(context);
  Batch batch{torch::empty({rows, columns}, torch::kInt64),
              torch::empty({rows, columns}, torch::kInt64)};
  std::int64_t* input = batch.data.data_ptr<std::int64_t>();
  std::int64_t* answers = batch.target.data_ptr<std::int64_t>();
  for (const std::uint32_t sample : samples) {
    const std::uint16_t* window = tokens.data() + sample * context;
    input = std::copy_n(window, context, input);
    answers = std::copy_n(window + 1, context, answers);
  }
  return batch;
}

std::shared_ptr<const Examples> text_examples(std::vector<std::uint16_t> tokens,
                                              std::size_t context) {
  std::vector<std::uint8_t> labels = window_labels(count_windows(tokens.size(), context));
  return std::make_shared<Examples>(Examples{
      .labels = std::move(labels), .batch = [tokens = std::move(tokens), context](auto samples) {
        return batch_of(tokens, context, samples);
      }});
}

Result<LoadedData> load_text_examples(const DataOptions& options, std::size_t context) {
  auto text = LONGHAUL_TRY(load_text(options.path));
  if (count_windows(text.test.size(), context) == 0) {
    return Error{ErrorCode::kMismatch,
                 "data text: a tenth of it, the test part, is shorter than a window of " +
                     std::to_string(context) + " characters"};
  }
  return LoadedData{.input = {.channels = 0,
                              .height = 0,
                              .width = 0,
                              .classes = static_cast<std::int64_t>(text.characters.size())},
                    .train = text_examples(std::move(text.train), context),
                    .test = text_examples(std::move(text.test), context),
                    .test_batch = 50};
}

}  // namespace

Result<LoadedData> load_data(const DataOptions& options, std::size_t context) {
  if (options.kind == "text") return load_text_examples(options, context);
  auto data = LONGHAUL_TRY(load_images(options.kind, options.path));
  const Scale scale = scale_of(data);
  const InputShape shape = data.train.shape;
  return LoadedData{.input = shape,
                    .train = image_examples(std::move(data.train), scale),
                    .test = image_examples(std::move(data.test), scale),
                    .test_batch = 500};
}

}  // namespace longhaul::trainer
