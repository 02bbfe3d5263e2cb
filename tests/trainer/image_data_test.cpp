#include "trainer/image_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "tests/trainer/data_files.h"

namespace longhaul::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::filesystem::path write_gzipped(const TestDirectory& directory, const std::string& name,
                                    const Bytes& bytes) {
  const auto file = directory.path() / name;
  gzFile out = gzopen(file.c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
  return file;
}

Bytes file_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const Bytes kLabels{0, 9, 3};
Bytes three_images() { return idx_images(3, 4, mixed_pixel); }

// What reading these two files says, "ok" if nothing.
std::string complaint(const Bytes& images, const Bytes& labels) {
  const TestDirectory directory;
  const auto read = read_idx(directory.write("images", images), directory.write("labels", labels));
  const std::string message = read.ok() ? "ok" : read.error().message;
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  return message;
}

TEST(Idx, ReadsPlainAndGzippedFiles) {
  const TestDirectory directory;
  const auto plain = read_idx(directory.write("images", three_images()),
                              directory.write("labels", idx_labels(kLabels)));
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->shape, (InputShape{.channels = 1, .height = 4, .width = 4, .classes = 10}));
  EXPECT_EQ(plain->labels, kLabels);
  ASSERT_EQ(plain->pixels.size(), 48U);
  EXPECT_EQ(plain->pixels[17], mixed_pixel(1, 1));

  const auto gzipped = read_idx(write_gzipped(directory, "images.gz", three_images()),
                                write_gzipped(directory, "labels.gz", idx_labels(kLabels)));
  ASSERT_TRUE(gzipped.ok()) << gzipped.error().message;
  EXPECT_EQ(gzipped->pixels, plain->pixels);
  EXPECT_EQ(gzipped->labels, plain->labels);
}

TEST(Idx, RefusesEveryTruncation) {
  const Bytes images = three_images();
  const Bytes labels = idx_labels(kLabels);
  for (const std::size_t length : {0U, 3U, 4U, 9U, 15U, 16U, 40U, 63U}) {
    const Bytes cut(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THAT(complaint(cut, labels), HasSubstr("truncated")) << length;
  }
  for (const std::size_t length : {0U, 3U, 4U, 7U, 8U, 10U}) {
    const Bytes cut(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THAT(complaint(images, cut), HasSubstr("truncated")) << length;
  }
}

TEST(Idx, RefusesWrongMagicNumbers) {
  EXPECT_THAT(complaint(idx_labels(kLabels), idx_labels(kLabels)),
              HasSubstr("not an idx file of images"));
  EXPECT_THAT(complaint(three_images(), three_images()), HasSubstr("not an idx file of labels"));
}

TEST(Idx, RefusesCountsThatDoNotMatch) {
  EXPECT_THAT(complaint(three_images(), idx_labels({1, 2})),
              HasSubstr("announces 2 labels for 3 images"));
  Bytes longer = three_images();
  longer.push_back(0);
  EXPECT_THAT(complaint(longer, idx_labels(kLabels)), HasSubstr("goes on after"));
  Bytes more_labels = idx_labels(kLabels);
  more_labels.push_back(0);
  EXPECT_THAT(complaint(three_images(), more_labels), HasSubstr("goes on after"));
}

TEST(Idx, RefusesAbsurdSizesBeforeReservingMemory) {
  Bytes huge = three_images();
  huge[4] = 0xFF;  // 4 billion images
  EXPECT_THAT(complaint(huge, idx_labels(kLabels)), HasSubstr("announces 4278190083 images"));
  Bytes wide = three_images();
  wide[8] = 0x80;
  EXPECT_THAT(complaint(wide, idx_labels(kLabels)), HasSubstr("announces 3 images"));
  Bytes none = three_images();
  none[7] = 0;
  EXPECT_THAT(complaint(none, idx_labels(kLabels)), HasSubstr("announces 0 images"));
}

TEST(Idx, RefusesLabelsOutOfRange) {
  EXPECT_THAT(complaint(three_images(), idx_labels({0, 10, 1})),
              HasSubstr("label 10 of sample 1 is not below 10"));
}

TEST(Idx, RefusesDamagedGzipData) {
  const TestDirectory directory;
  const auto labels = directory.write("labels", idx_labels(kLabels));
  const Bytes whole = file_bytes(write_gzipped(directory, "images.gz", three_images()));
  Bytes garbage = whole;
  for (std::size_t i = 12; i < garbage.size(); ++i) garbage.at(i) = 0xA5;
  Bytes wrong_checksum = whole;
  wrong_checksum.at(wrong_checksum.size() - 6) ^= 1;
  for (const Bytes& bytes : {garbage, wrong_checksum}) {
    const auto read = read_idx(directory.write("bad.gz", bytes), labels);
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().message, HasSubstr("damaged gzip data"));
  }
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(read_idx(directory.write("cut.gz", cut), labels).ok()) << length;
  }
}

TEST(Cifar, ReadsRecordsOfSeveralFiles) {
  const TestDirectory directory;
  Bytes record(3073, 7);
  record[0] = 4;
  Bytes two = record;
  two.insert(two.end(), record.begin(), record.end());
  two[3073] = 9;
  const auto read = read_cifar({directory.write("a.bin", record), directory.write("b.bin", two)});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->labels, (Bytes{4, 4, 9}));
  EXPECT_EQ(read->pixels.size(), 3U * 3072U);
  EXPECT_EQ(read->shape.channels, 3);
}

TEST(Cifar, RefusesPartialRecordsEmptyFilesAndWrongLabels) {
  const TestDirectory directory;
  const Bytes record(3073, 10);
  EXPECT_FALSE(read_cifar({directory.write("empty", {})}).ok());
  EXPECT_THAT(read_cifar({directory.write("part", Bytes(3072, 1))}).error().message,
              HasSubstr("3072 bytes are not a number of records of 3073 bytes"));
  EXPECT_THAT(read_cifar({directory.write("label", record)}).error().message,
              HasSubstr("label 10 of sample 0"));
}

TEST(LoadImages, SaysWhatToInstallAndWhereItLooked) {
  const TestDirectory directory;
  EXPECT_THAT(load_images("fashion-mnist", directory.path()).error().message,
              AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr(directory.path().string()),
                    HasSubstr("dataset-fashion-mnist"), Not(HasSubstr("\n"))));
  EXPECT_THAT(load_images("cifar-10", directory.path()).error().message,
              AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("cifar-10-binary.tar.gz")));
  EXPECT_EQ(load_images("mnist", directory.path()).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(load_images("imagenet", {}).error().message, HasSubstr("got \"imagenet\""));
}

TEST(LoadImages, RefusesTestImagesOfAnotherSize) {
  const TestDirectory directory;
  directory.write("train-images-idx3-ubyte", three_images());
  directory.write("train-labels-idx1-ubyte", idx_labels(kLabels));
  directory.write("t10k-images-idx3-ubyte", idx_images(3, 5, mixed_pixel));
  directory.write("t10k-labels-idx1-ubyte", idx_labels(kLabels));
  EXPECT_THAT(load_images("mnist", directory.path()).error().message, HasSubstr("differ in size"));
}

}  // namespace
}  // namespace longhaul::trainer
