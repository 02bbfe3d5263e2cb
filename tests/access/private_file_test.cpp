#include "longhaul/access/private_file.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/access/access_directory.h"

namespace longhaul::access {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

using PrivateFile = AccessTest;

// The mask of a process, restored with the test.
class Umask {
 public:
  explicit Umask(::mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  ::mode_t before_;
};

TEST_F(PrivateFile, IsTheOwnersWhateverTheUmask) {
  for (const ::mode_t mask : {0000U, 0022U, 0077U}) {
    const Umask set(mask);
    const fs::path place = directory_ / std::to_string(mask);
    ASSERT_TRUE(make_private_directory(place).ok());
    ASSERT_TRUE(create_private_file(place / "a", "text").ok());
    Result<StagedFile> staged = StagedFile::write(place / "b", "text");
    ASSERT_TRUE(staged.ok());
    ASSERT_TRUE(std::move(*staged).commit().ok());
    EXPECT_EQ(mode_of(place), 0700U);
    EXPECT_EQ(mode_of(place / "a"), 0600U);
    EXPECT_EQ(mode_of(place / "b"), 0600U);
  }
}

TEST_F(PrivateFile, IsNeverCreatedOverAnother) {
  ASSERT_TRUE(create_private_file(directory_ / "a", "first").ok());
  EXPECT_FALSE(create_private_file(directory_ / "a", "second").ok());
  fs::create_symlink(directory_ / "target", directory_ / "link");
  EXPECT_FALSE(create_private_file(directory_ / "link", "text").ok());
  EXPECT_FALSE(fs::exists(directory_ / "target"));
  EXPECT_EQ(read_private_file(directory_ / "a").value(), "first");
}

TEST_F(PrivateFile, OneThatOthersCanReadIsRefusedWithTheRemedy) {
  ASSERT_TRUE(create_private_file(directory_ / "key", "text").ok());
  for (const unsigned mode : {0640U, 0604U, 0620U, 0601U}) {
    fs::permissions(directory_ / "key", fs::perms{mode});
    const Result<std::string> text = read_private_file(directory_ / "key");
    ASSERT_FALSE(text.ok()) << mode;
    EXPECT_THAT(text.error().message, HasSubstr("chmod 600"));
    EXPECT_TRUE(read_file(directory_ / "key").ok());
  }
}

TEST_F(PrivateFile, ADirectoryThatOthersCanEnterIsRefusedWithTheRemedy) {
  fs::permissions(directory_, fs::perms{0755});
  const Status made = make_private_directory(directory_);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("chmod 700"));
  fs::permissions(directory_, fs::perms{0700});
  EXPECT_TRUE(make_private_directory(directory_).ok());
}

TEST_F(PrivateFile, WhatIsNoFileOrTooLongIsRefused) {
  EXPECT_FALSE(read_file(directory_).ok());
  EXPECT_EQ(read_file(directory_ / "none").error().code, ErrorCode::kNotFound);
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(directory_ / "pipe").ok());
  ASSERT_TRUE(create_private_file(directory_ / "long", std::string((1U << 20U) + 1, 'x')).ok());
  EXPECT_THAT(read_file(directory_ / "long").error().message, HasSubstr("too long"));
}

TEST_F(PrivateFile, WhatCouldNotBeReadAgainIsNotWritten) {
  const fs::path file = directory_ / "file";
  const std::string most(std::size_t{1} << 20U, 'x');
  ASSERT_TRUE(StagedFile::write(file, most).value().commit().ok());
  EXPECT_EQ(read_private_file(file).value(), most);
  EXPECT_FALSE(StagedFile::write(file, most + 'x').ok());
}

TEST_F(PrivateFile, StagedContentIsSeenWholeOrNotAtAll) {
  ASSERT_TRUE(create_private_file(directory_ / "a", "old").ok());
  {
    const Result<StagedFile> dropped = StagedFile::write(directory_ / "a", "new");
    ASSERT_TRUE(dropped.ok());
    EXPECT_EQ(read_file(directory_ / "a").value(), "old");
  }
  EXPECT_EQ(read_file(directory_ / "a").value(), "old");
  Result<StagedFile> staged = StagedFile::write(directory_ / "a", "new");
  ASSERT_TRUE(std::move(*staged).commit().ok());
  EXPECT_EQ(read_file(directory_ / "a").value(), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1) << "nothing is left over";
}

TEST_F(PrivateFile, OneProcessAtATimeHoldsALock) {
  {
    const Result<OwnedFd> first = lock_directory(directory_, "busy");
    ASSERT_TRUE(first.ok());
    const Result<OwnedFd> second = lock_directory(directory_, "busy");
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error().message, HasSubstr("busy"));
  }
  EXPECT_TRUE(lock_directory(directory_, "busy").ok());
}

}  // namespace
}  // namespace longhaul::access
