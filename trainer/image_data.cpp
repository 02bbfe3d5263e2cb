#include "trainer/image_data.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "trainer/data_file.h"

namespace longhaul::trainer {
namespace {

using std::filesystem::path;

constexpr std::uint32_t kImagesMagic = 0x00000803;  // unsigned bytes, three dimensions
constexpr std::uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes, one dimension
constexpr std::uint32_t kMostImages = 10'000'000;
constexpr std::uint32_t kLongestSide = 1024;
constexpr std::size_t kMostPixelBytes = std::size_t{1} << 31U;
constexpr InputShape kCifarShape{.channels = 3, .height = 32, .width = 32, .classes = 10};
constexpr std::size_t kCifarFileLimit = std::size_t{1} << 28U;

struct DataSet {
  std::string_view name;
  std::string directory;  // below the usual places
  std::string advice;
  std::array<float, 3> mean;
  std::array<float, 3> deviation;
  bool is_cifar;
};

const std::array<DataSet, 3>& data_sets() {
  static const std::array<DataSet, 3> kSets{{
      {.name = "fashion-mnist",
       .directory = "fashion-mnist",
       .advice = "install the Debian package dataset-fashion-mnist or name its directory (lab: "
                 "--set data.path=DIR, train: --data DIR)",
       .mean = {0.2860F},
       .deviation = {0.3530F},
       .is_cifar = false},
      {.name = "mnist",
       .directory = "mnist",
       .advice = "put the four idx files of MNIST there or name their directory (lab: --set "
                 "data.path=DIR, train: --data DIR)",
       .mean = {0.1307F},
       .deviation = {0.3081F},
       .is_cifar = false},
      {.name = "cifar-10",
       .directory = "cifar-10-batches-bin",
       .advice =
           "unpack cifar-10-binary.tar.gz there (data_batch_1.bin … data_batch_5.bin, "
           "test_batch.bin) or name its directory (lab: --set data.path=DIR, train: --data DIR)",
       .mean = {0.4914F, 0.4822F, 0.4465F},
       .deviation = {0.2470F, 0.2435F, 0.2616F},
       .is_cifar = true},
  }};
  return kSets;
}

std::uint32_t big_endian(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8U) | bytes[at + i];
  return value;
}

Result<DataFile> open_idx(const path& file, std::uint32_t magic) {
  auto opened = LONGHAUL_TRY(DataFile::open(file));
  auto head = LONGHAUL_TRY(opened.read(4));
  if (big_endian(head, 0) != magic) {
    return opened.damaged("not an idx file of " +
                          std::string(magic == kImagesMagic ? "images" : "labels") +
                          " (wrong magic number)");
  }
  return opened;
}

Status read_idx_pixels(const path& file, Images& images, std::uint32_t& count) {
  auto opened = LONGHAUL_TRY(open_idx(file, kImagesMagic));
  auto head = LONGHAUL_TRY(opened.read(12));
  count = big_endian(head, 0);
  const std::uint32_t height = big_endian(head, 4);
  const std::uint32_t width = big_endian(head, 8);
  const bool is_sane = count > 0 && count <= kMostImages && height > 0 && height <= kLongestSide &&
                       width > 0 && width <= kLongestSide;
  const std::size_t bytes = is_sane ? std::size_t{count} * height * width : 0;
  if (!is_sane || bytes > kMostPixelBytes) {
    return opened.damaged("announces " + std::to_string(count) + " images of " +
                          std::to_string(height) + " × " + std::to_string(width) + " pixels");
  }
  images.shape = {.channels = 1, .height = height, .width = width, .classes = 10};
  auto pixels = LONGHAUL_TRY(opened.read(bytes));
  images.pixels = std::move(pixels);
  return opened.expect_end();
}

Status check_labels(const DataFile& file, const Images& images) {
  const auto wrong = std::ranges::find_if(
      images.labels, [&](std::uint8_t label) { return label >= images.shape.classes; });
  if (wrong == images.labels.end()) return Done{};
  return file.damaged("label " + std::to_string(*wrong) + " of sample " +
                      std::to_string(wrong - images.labels.begin()) + " is not below " +
                      std::to_string(images.shape.classes));
}

Status read_idx_labels(const path& file, Images& images, std::uint32_t count) {
  auto opened = LONGHAUL_TRY(open_idx(file, kLabelsMagic));
  auto head = LONGHAUL_TRY(opened.read(4));
  if (const std::uint32_t announced = big_endian(head, 0); announced != count) {
    Error mismatch = opened.damaged("announces " + std::to_string(announced) + " labels for " +
                                    std::to_string(count) + " images");
    mismatch.code = ErrorCode::kMismatch;
    return mismatch;
  }
  auto labels = LONGHAUL_TRY(opened.read(count));
  images.labels = std::move(labels);
  LONGHAUL_TRY(opened.expect_end());
  return check_labels(opened, images);
}

Status append_cifar(const path& file, Images& images) {
  auto opened = LONGHAUL_TRY(DataFile::open(file));
  auto bytes = LONGHAUL_TRY(opened.read_rest(kCifarFileLimit));
  const std::size_t record = 1 + static_cast<std::size_t>(images.shape.pixels());
  if (bytes.empty() || bytes.size() % record != 0) {
    return opened.damaged(std::to_string(bytes.size()) + " bytes are not a number of records of " +
                          std::to_string(record) + " bytes");
  }
  for (auto at = bytes.begin(); at != bytes.end(); at += static_cast<std::ptrdiff_t>(record)) {
    images.labels.push_back(*at);
    images.pixels.insert(images.pixels.end(), at + 1, at + static_cast<std::ptrdiff_t>(record));
  }
  return check_labels(opened, images);
}

// The path of a file of the data set, by its name.
using Finder = std::function<Result<path>(const std::string& name)>;

Finder finder_for(const DataSet& set, const path& directory) {
  std::vector<path> directories{directory};
  if (directory.empty())
    directories = {path("/usr/share/datasets") / set.directory, path("data") / set.directory};
  return [&set, directories](const std::string& name) {
    return find_data_file(directories, name, set.advice);
  };
}

Result<Images> load_idx(const Finder& find, const std::string& part) {
  auto images = LONGHAUL_TRY(find(part + "-images-idx3-ubyte"));
  auto labels = LONGHAUL_TRY(find(part + "-labels-idx1-ubyte"));
  return read_idx(images, labels);
}

Result<Images> load_cifar(const Finder& find, const std::vector<std::string>& names) {
  std::vector<path> files;
  for (const std::string& name : names) {
    auto file = LONGHAUL_TRY(find(name));
    files.push_back(std::move(file));
  }
  return read_cifar(files);
}

Result<ImageData> load(const DataSet& set, const Finder& find) {
  auto train = LONGHAUL_TRY(
      set.is_cifar ? load_cifar(find, {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin"})
                   : load_idx(find, "train"));
  auto test =
      LONGHAUL_TRY(set.is_cifar ? load_cifar(find, {"test_batch.bin"}) : load_idx(find, "t10k"));
  if (train.shape != test.shape) {
    return Error{ErrorCode::kMismatch, "training and test images differ in size"};
  }
  return ImageData{.train = std::move(train),
                   .test = std::move(test),
                   .mean = set.mean,
                   .deviation = set.deviation};
}

}  // namespace

Result<Images> read_idx(const path& images, const path& labels) {
  Images read;
  std::uint32_t count = 0;
  LONGHAUL_TRY(read_idx_pixels(images, read, count));
  LONGHAUL_TRY(read_idx_labels(labels, read, count));
  return read;
}

Result<Images> read_cifar(const std::vector<path>& files) {
  Images read;
  read.shape = kCifarShape;
  for (const path& file : files) {
    LONGHAUL_TRY(append_cifar(file, read));
  }
  return read;
}

Result<ImageData> load_images(std::string_view name, const path& directory) {
  const auto set = std::ranges::find(data_sets(), name, &DataSet::name);
  if (set == data_sets().end()) {
    return Error{
        ErrorCode::kInvalidArgument,
        "data: expected fashion-mnist, mnist, cifar-10 or text, got \"" + std::string(name) + '"'};
  }
  auto loaded = load(*set, finder_for(*set, directory));
  if (!loaded) return std::move(loaded).error().within("data " + std::string(name));
  return loaded;
}

}  // namespace longhaul::trainer
