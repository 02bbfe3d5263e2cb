// Small data files, right and damaged, for tests of the loaders.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace longhaul::trainer {

using Bytes = std::vector<std::uint8_t>;

// A directory of its own for the running test, removed at its end.
class TestDirectory {
 public:
  TestDirectory() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            (std::string("longhaul_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    const auto file = path_ / name;
    std::ofstream out(file, std::ios::binary);
    for (const std::uint8_t byte : bytes) out.put(static_cast<char>(byte));
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline void append_u32(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<std::uint8_t>(value >> static_cast<unsigned>(shift)));
  }
}

inline Bytes idx_labels(const Bytes& labels) {
  Bytes bytes;
  append_u32(bytes, 0x801);
  append_u32(bytes, static_cast<std::uint32_t>(labels.size()));
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

using PixelAt = std::function<std::uint8_t(std::size_t image, std::size_t pixel)>;

inline Bytes idx_images(std::uint32_t count, std::uint32_t side, const PixelAt& pixel_at) {
  Bytes bytes;
  append_u32(bytes, 0x803);
  append_u32(bytes, count);
  append_u32(bytes, side);
  append_u32(bytes, side);
  for (std::size_t image = 0; image < count; ++image) {
    for (std::size_t pixel = 0; pixel < side * side; ++pixel)
      bytes.push_back(pixel_at(image, pixel));
  }
  return bytes;
}

inline std::uint8_t mixed_pixel(std::size_t image, std::size_t pixel) {
  return static_cast<std::uint8_t>((image * 7919 + pixel * 31 + image * pixel) % 251);
}

// Four files in the form of MNIST, small and easy to tell apart: class c has a bright band of its
// own in noise.
inline void write_easy_images(const TestDirectory& directory, std::uint32_t side,
                              std::uint32_t train, std::uint32_t test) {
  const auto write = [&](const std::string& part, std::uint32_t count) {
    Bytes labels;
    for (std::size_t i = 0; i < count; ++i) labels.push_back(static_cast<std::uint8_t>(i % 10));
    const auto pixel_at = [&](std::size_t image, std::size_t pixel) {
      const std::size_t band = pixel * 10 / (std::size_t{side} * side);
      const int noise = mixed_pixel(image, pixel) / 4;
      return static_cast<std::uint8_t>(band == labels[image] ? 120 + noise : noise);
    };
    directory.write(part + "-images-idx3-ubyte", idx_images(count, side, pixel_at));
    directory.write(part + "-labels-idx1-ubyte", idx_labels(labels));
  };
  write("train", train);
  write("t10k", test);
}

}  // namespace longhaul::trainer
