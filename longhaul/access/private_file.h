// Files and directories that only their owner can read, with these modes from their first moment. A
// chmod afterwards would leave a gap, and a umask can only take rights away.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

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
  StagedFile(StagedFile&& other) noexcept
      : path_(std::move(other.path_)), staged_(std::exchange(other.staged_, {})) {}
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  Status commit() &&;

 private:
  StagedFile(std::filesystem::path path, std::filesystem::path staged)
      : path_(std::move(path)), staged_(std::move(staged)) {}

  std::filesystem::path path_;
  std::filesystem::path staged_;  // empty: nothing is to be removed
};

// One process at a time has a directory, for as long as it keeps the descriptor. Never waits: a
// second process gets an error that says `busy`.
Result<OwnedFd> lock_directory(const std::filesystem::path& directory, std::string_view busy);

}  // namespace longhaul::access
