// Files and directories that only their owner can read, with these modes from their first moment. A
// chmod afterwards would leave a gap, and a umask can only take rights away.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/base/owned_fd.h"
#include "longhaul/base/result.h"

namespace longhaul::access {

// Mode 0700. One that exists is fine if nobody else can enter it.
Status make_private_directory(const std::filesystem::path& path);

// Mode 0600. Fails if the file exists; a failed one is removed.
Status create_private_file(const std::filesystem::path& path, std::string_view text);

// At most 1 MiB.
Result<std::string> read_file(const std::filesystem::path& path);
// Refuses a file that group or others can reach, and says how to repair that.
Result<std::string> read_private_file(const std::filesystem::path& path);

// A new content of a file, on disk but not yet in its place: commit() puts it there in one step.
// Without commit the old content stays and the new one is removed.
class StagedFile {
 public:
  static Result<StagedFile> write(const std::filesystem::path& path, std::string_view text);

  Status commit() &&;

 private:
  struct Remove {
    void operator()(const std::filesystem::path* path) const;
  };

  explicit StagedFile(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::unique_ptr<const std::filesystem::path, Remove> staged_;
};

// One process at a time has a directory. Taking never waits: a second one is told so.
class DirectoryLock {
 public:
  // `busy` is what the second one is told.
  static Result<DirectoryLock> take(const std::filesystem::path& directory, std::string_view busy);

 private:
  explicit DirectoryLock(OwnedFd fd) : fd_(std::move(fd)) {}

  OwnedFd fd_;
};

}  // namespace longhaul::access
