// Labelled images: MNIST and Fashion-MNIST in idx format, CIFAR-10 in its binary format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "trainer/data_set.h"

namespace longhaul::trainer {

// Labelled images of one shape.
struct Images {
  InputShape shape;
  std::vector<std::uint8_t> pixels;  // image by image, channel by channel, row by row
  std::vector<std::uint8_t> labels;  // below shape.classes

  [[nodiscard]] std::size_t count() const { return labels.size(); }
};

// Images to train with and images to test with.
struct ImageData {
  Images train;
  Images test;
  // Per channel, of pixels scaled to 0 … 1; a model sees (pixel - mean) / deviation.
  std::array<float, 3> mean{};
  std::array<float, 3> deviation{};
};

// `name` is "fashion-mnist", "mnist" or "cifar-10"; an empty `directory` stands for the usual
// places (docs/models_and_data.md).
Result<ImageData> load_images(std::string_view name, const std::filesystem::path& directory);

// The parts, for callers that know their files.
Result<Images> read_idx(const std::filesystem::path& images, const std::filesystem::path& labels);
Result<Images> read_cifar(const std::vector<std::filesystem::path>& files);

}  // namespace longhaul::trainer
