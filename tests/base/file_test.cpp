// Files are replaced whole or not at all, and read only as far as is wanted.
#include "longhaul/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace longhaul {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

ByteBuffer bytes_of(std::string_view text) {
  const ByteView view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~FileTest() override { fs::remove_all(directory_); }

  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }

  fs::path directory_ = fs::path(::testing::TempDir()) /
                        (std::string("longhaul_file_test_") +
                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
  fs::path path_ = directory_ / "state.safetensors";
};

TEST_F(FileTest, IsReadAsItWasWrittenAndLeavesNothingBesideIt) {
  for (const std::string_view text : {"first", "", "second, which is longer"}) {
    ASSERT_TRUE(write_file_atomically(path_, bytes_of(text)).ok());
    EXPECT_EQ(read_file(path_, 100).value(), bytes_of(text));
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(FileTest, AFailedWriteLeavesTheOldOneAndNothingElse) {
  fs::create_directories(path_ / "not empty");  // what no file can replace
  const Status written = write_file_atomically(path_, bytes_of("new"));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  EXPECT_THAT(written.error().message, HasSubstr(path_.string() + ": cannot replace: "));
  EXPECT_TRUE(fs::is_directory(path_ / "not empty"));
  EXPECT_EQ(files(), 1);
}

TEST_F(FileTest, IsWrittenBesideWhatACrashLeftBehind) {
  ASSERT_TRUE(write_file_atomically(path_, bytes_of("old")).ok());
  const fs::path left = path_.string() + "." + std::to_string(getpid()) + "-0.tmp";
  ASSERT_TRUE(write_file_atomically(left, bytes_of("half")).ok());
  ASSERT_TRUE(write_file_atomically(path_, bytes_of("new")).ok());
  EXPECT_EQ(read_file(path_, 100).value(), bytes_of("new"));
  EXPECT_EQ(read_file(left, 100).value(), bytes_of("half"));
}

TEST_F(FileTest, ErrorsNameTheFile) {
  const Result<ByteBuffer> missing = read_file(path_, 100);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr(path_.string() + ": cannot open: "));
  EXPECT_EQ(read_file(directory_, 1 << 20).error().code, ErrorCode::kIo);
  const Status nowhere = write_file_atomically(directory_ / "no" / "file", {});
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
}

TEST_F(FileTest, RefusesToReadMoreThanIsWanted) {
  ASSERT_TRUE(write_file_atomically(path_, bytes_of("12345")).ok());
  EXPECT_TRUE(read_file(path_, 5).ok());
  EXPECT_THAT(read_file(path_, 4).error().message, HasSubstr("longer than 4 bytes"));
  EXPECT_THAT(read_file("/dev/zero", 10'000).error().message, HasSubstr("longer than 10000"));
}

class OutputTest : public FileTest {
 protected:
  Status write(const fs::path& path, bool is_forced = false) {
    return write_output(path, bytes_of("new " + std::string(kMark)), kMark, is_forced);
  }
  [[nodiscard]] std::string text_of(const fs::path& path) const {
    const ByteBuffer bytes = read_file(path, 1000).value();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void expect_refused(const fs::path& path, const std::string& why, bool is_forced = false) {
    const Status written = write(path, is_forced);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(written.error().message, HasSubstr(path.string() + ": " + why));
  }

  static constexpr std::string_view kMark = "<!-- ours -->";
  std::string written_ = "new " + std::string(kMark);
};

TEST_F(OutputTest, ANewFileAnEmptyOneAndOneOfOursAreWritten) {
  ASSERT_TRUE(write(path_).ok());
  EXPECT_EQ(text_of(path_), written_);
  ASSERT_TRUE(write(path_).ok());
  ASSERT_TRUE(write_file_atomically(path_, {}).ok());
  ASSERT_TRUE(write(path_).ok());
  EXPECT_EQ(text_of(path_), written_);
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputTest, SomeoneElsesFileIsKeptUnlessForced) {
  ASSERT_TRUE(write_file_atomically(path_, bytes_of("a thesis")).ok());
  expect_refused(path_, "exists, and Longhaul did not write it");
  EXPECT_EQ(text_of(path_), "a thesis");
  ASSERT_TRUE(write(path_, true).ok());
  EXPECT_EQ(text_of(path_), written_);
}

TEST_F(OutputTest, OnlyFilesAreReplacedEvenIfForced) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const fs::path null = directory_ / "null";
  fs::create_symlink("/dev/null", null);
  for (const bool is_forced : {false, true}) {
    expect_refused(path_, "expected a file, got a FIFO", is_forced);
    expect_refused(directory_, "expected a file, got a directory", is_forced);
    expect_refused("/dev/full", "expected a file, got a device", is_forced);
    expect_refused(null, "expected a file, got a device", is_forced);
  }
  expect_refused(directory_ / "", "expected the name of a file");
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_TRUE(fs::is_symlink(null));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(files(), 2);
}

TEST_F(OutputTest, LinksAreFollowedAlsoToWhereNothingIsYet) {
  fs::create_directories(directory_ / "there");
  const fs::path link = directory_ / "link";
  fs::create_symlink("there/file", link);  // relative to the link
  fs::create_symlink(link, path_);
  ASSERT_TRUE(write(path_).ok());  // dangling
  EXPECT_EQ(text_of(directory_ / "there" / "file"), written_);
  ASSERT_TRUE(write(path_).ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::is_symlink(link));
  ASSERT_TRUE(write_file_atomically(directory_ / "there" / "file", bytes_of("a thesis")).ok());
  expect_refused(path_, "exists, and Longhaul did not write it");
  fs::create_symlink("loop", directory_ / "loop");
  EXPECT_FALSE(write(directory_ / "loop").ok());
}

TEST_F(OutputTest, StandardOutputIsWrittenThrough) {
  EXPECT_TRUE(is_standard_output("-"));
  EXPECT_TRUE(is_standard_output("/dev/stdout"));
  EXPECT_FALSE(is_standard_output("stdout"));
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(write("-").ok());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), written_);
}

}  // namespace
}  // namespace longhaul
