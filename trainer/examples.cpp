#include "trainer/examples.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "trainer/image_data.h"
#include "trainer/text_data.h"

namespace longhaul::trainer {
namespace {

class ImageExamples final : public Examples {
 public:
  ImageExamples(Images images, const std::array<float, 3>& mean,
                const std::array<float, 3>& deviation)
      : images_(std::move(images)) {
    for (std::size_t channel = 0; channel < images_.shape.channels; ++channel) {
      for (std::size_t pixel = 0; pixel < 256; ++pixel) {
        scaled_[channel][pixel] =
            (static_cast<float>(pixel) / 255.0F - mean[channel]) / deviation[channel];
      }
    }
  }

  [[nodiscard]] std::span<const std::uint8_t> labels() const override { return images_.labels; }

  [[nodiscard]] Batch batch(std::span<const std::uint32_t> samples) const override {
    const ImageShape& shape = images_.shape;
    const auto dimension = [](std::size_t size) { return static_cast<std::int64_t>(size); };
    Batch batch{torch::empty({dimension(samples.size()), dimension(shape.channels),
                              dimension(shape.height), dimension(shape.width)},
                             torch::kFloat32),
                torch::empty({dimension(samples.size())}, torch::kInt64)};
    float* out = batch.input.data_ptr<float>();
    std::int64_t* answers = batch.answers.data_ptr<std::int64_t>();
    const std::size_t plane = shape.height * shape.width;
    for (const std::uint32_t sample : samples) {
      const std::uint8_t* in = images_.pixels.data() + sample * shape.pixels();
      for (std::size_t channel = 0; channel < shape.channels; ++channel) {
        const auto& scaled = scaled_[channel];
        out =
            std::transform(in, in + plane, out, [&](std::uint8_t pixel) { return scaled[pixel]; });
        in += plane;
      }
      *answers++ = images_.labels[sample];
    }
    return batch;
  }

 private:
  Images images_;
  std::array<std::array<float, 256>, 3> scaled_{};  // what the model sees for each pixel value
};

class TextExamples final : public Examples {
 public:
  TextExamples(std::vector<std::uint16_t> tokens, std::size_t context)
      : tokens_(std::move(tokens)),
        context_(context),
        labels_(window_labels(count_windows(tokens_.size(), context))) {}

  [[nodiscard]] std::span<const std::uint8_t> labels() const override { return labels_; }

  [[nodiscard]] Batch batch(std::span<const std::uint32_t> samples) const override {
    const auto rows = static_cast<std::int64_t>(samples.size());
    const auto columns = static_cast<std::int64_t>(context_);
    Batch batch{torch::empty({rows, columns}, torch::kInt64),
                torch::empty({rows, columns}, torch::kInt64)};
    std::int64_t* input = batch.input.data_ptr<std::int64_t>();
    std::int64_t* answers = batch.answers.data_ptr<std::int64_t>();
    for (const std::uint32_t sample : samples) {
      const std::uint16_t* window = tokens_.data() + sample * context_;
      input = std::copy_n(window, context_, input);
      answers = std::copy_n(window + 1, context_, answers);
    }
    return batch;
  }

 private:
  std::vector<std::uint16_t> tokens_;
  std::size_t context_;
  std::vector<std::uint8_t> labels_;
};

Result<LoadedData> load_text_examples(const DataConfig& config, std::size_t context) {
  auto text = LONGHAUL_TRY(load_text(config.path));
  if (count_windows(text.test.size(), context) == 0) {
    return Error{ErrorCode::kMismatch,
                 "data text: a tenth of it, the test part, is shorter than a window of " +
                     std::to_string(context) + " characters"};
  }
  return LoadedData{.input = {.kind = InputKind::kText,
                              .channels = 0,
                              .height = 0,
                              .width = 0,
                              .classes = static_cast<std::int64_t>(text.characters.size())},
                    .train = std::make_shared<TextExamples>(std::move(text.train), context),
                    .test = std::make_shared<TextExamples>(std::move(text.test), context),
                    .test_batch = 50};
}

}  // namespace

Result<LoadedData> load_data(const DataConfig& config, std::size_t context) {
  if (config.kind == "text") return load_text_examples(config, context);
  auto data = LONGHAUL_TRY(load_images(config.kind, config.path));
  const ImageShape shape = data.train.shape;
  return LoadedData{
      .input = {.kind = InputKind::kImages,
                .channels = static_cast<std::int64_t>(shape.channels),
                .height = static_cast<std::int64_t>(shape.height),
                .width = static_cast<std::int64_t>(shape.width),
                .classes = static_cast<std::int64_t>(shape.classes)},
      .train = std::make_shared<ImageExamples>(std::move(data.train), data.mean, data.deviation),
      .test = std::make_shared<ImageExamples>(std::move(data.test), data.mean, data.deviation),
      .test_batch = 500};
}

}  // namespace longhaul::trainer
