#include "longhaul/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "longhaul/base/owned_fd.h"

namespace longhaul {
namespace {

using Path = std::filesystem::path;

// The last error of the operating system.
Error failed_to(const char* what, const Path& path) {
  const int code = errno;
  return {code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
          path.string() + ": cannot " + what + ": " + std::generic_category().message(code)};
}

// As ::open(), but not for programs that this one becomes.
OwnedFd opened(const Path& path, int flags, mode_t mode = 0) {
  return OwnedFd(::open(path.c_str(), flags | O_CLOEXEC, mode));
}

bool write_all(const OwnedFd& file, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

constexpr std::string_view kUnfinished = ".tmp";

// Opens a file beside the one that is to be written. `fresh` becomes its name, which nobody else
// has.
OwnedFd open_beside(const Path& path, Path& fresh) {
  constexpr int kMostTries = 100;
  for (int i = 0;; ++i) {
    std::string name = path.string();
    name.append(".").append(std::to_string(::getpid()));
    name.append("-").append(std::to_string(i)).append(kUnfinished);
    fresh = name;
    OwnedFd file = opened(fresh, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file.is_open() || errno != EEXIST || i == kMostTries) return file;
  }
}

// Named as open_beside() does.
bool is_unfinished(const Path& path) {
  const std::string number = path.stem().extension().string();
  return path.extension() == kUnfinished && number.size() > 1 &&
         number.find_first_not_of("0123456789-", 1) == std::string::npos;
}

Status write_and_sync(const OwnedFd& file, const Path& name, std::span<const ByteView> pieces) {
  for (const ByteView bytes : pieces) {
    if (!write_all(file, bytes)) return failed_to("write", name);
  }
  if (::fsync(file.get()) != 0) return failed_to("sync", name);
  return Done{};
}

// A new name is on disk only when its directory is.
Status sync_directory_of(const Path& path) {
  const Path directory = path.has_parent_path() ? path.parent_path() : Path(".");
  const OwnedFd file = opened(directory, O_RDONLY | O_DIRECTORY);
  if (!file.is_open() || ::fsync(file.get()) != 0) return failed_to("sync", directory);
  return Done{};
}

// A file that a result must not replace is wrong use.
Error refused_output(const Path& path, const std::string& why) {
  return {ErrorCode::kInvalidArgument, path.string() + ": " + why};
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Follows links also to where nothing is yet.
Result<Path> end_of_links(Path path) {
  constexpr int kMostLinks = 40;
  std::error_code failure;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(path, failure)) return path;
    const Path next = std::filesystem::read_symlink(path, failure);
    if (failure) return Error{ErrorCode::kIo, path.string() + ": " + failure.message()};
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return refused_output(path, "too many symbolic links");
}

Result<bool> has_mark(const Path& path, std::string_view mark) {
  constexpr std::size_t kMostBytes = (std::size_t{1} << 20) + 64;
  const OwnedFd file = opened(path, O_RDONLY | O_NONBLOCK);
  if (!file.is_open()) return failed_to("open", path);
  std::string begin(kMostBytes, '\0');
  std::size_t length = 0;
  while (length < begin.size()) {
    const ssize_t got = ::read(file.get(), begin.data() + length, begin.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed_to("read", path);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  return std::string_view(begin).substr(0, length).find(mark) != std::string_view::npos;
}

Error too_long(const Path& path, std::size_t most_bytes) {
  return {ErrorCode::kMismatch,
          path.string() + ": longer than " + std::to_string(most_bytes) + " bytes"};
}

Status write_pieces(const Path& path, std::span<const ByteView> pieces) {
  Path fresh;
  const OwnedFd file = open_beside(path, fresh);
  if (!file.is_open()) return failed_to("create", fresh);
  Status written = write_and_sync(file, fresh, pieces);
  if (written.ok() && std::rename(fresh.c_str(), path.c_str()) != 0)
    written = failed_to("replace", path);
  if (!written.ok()) {
    ::unlink(fresh.c_str());
    return written;
  }
  return sync_directory_of(path);
}

}  // namespace

Status write_file_atomically(const Path& path, ByteView bytes) {
  return write_pieces(path, {&bytes, 1});
}

Status write_rope_atomically(const Path& path, const ByteRope& bytes) {
  return write_pieces(path, bytes.pieces());
}

bool is_standard_output(const Path& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

Result<Path> output_target(const Path& path, std::string_view mark, bool is_forced) {
  if (is_standard_output(path)) return path;
  if (path.filename().empty()) return refused_output(path, "expected the name of a file");
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno != ENOENT) return failed_to("write", path);
    return end_of_links(path);
  }
  if (!S_ISREG(facts.st_mode))
    return refused_output(path, std::string("expected a file, got ") + kind_of(facts.st_mode));
  if (facts.st_size > 0 && !is_forced) {
    const Result<bool> is_ours = has_mark(path, mark);
    if (!is_ours.ok()) return is_ours.error();
    if (!*is_ours)
      return refused_output(path,
                            "exists, and Longhaul did not write it; name another file, or replace "
                            "this one with --force");
  }
  return end_of_links(path);
}

Status write_output(const Path& path, ByteView bytes, std::string_view mark, bool is_forced) {
  if (is_standard_output(path)) {
    const OwnedFd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!out.is_open() || !write_all(out, bytes)) return failed_to("write", "standard output");
    return Done{};
  }
  const Result<Path> target = output_target(path, mark, is_forced);
  if (!target.ok()) return target.error();
  return write_file_atomically(*target, bytes);
}

void remove_unfinished_writes(const Path& directory, std::string_view start) {
  std::error_code failure;
  const Path there = directory.empty() ? Path(".") : directory;
  for (const auto& entry : std::filesystem::directory_iterator(there, failure)) {
    const Path& path = entry.path();
    if (path.filename().string().starts_with(start) && is_unfinished(path))
      std::filesystem::remove(path, failure);
  }
}

Result<ByteBuffer> read_file(const Path& path, std::size_t most_bytes) {
  const OwnedFd file = opened(path, O_RDONLY);
  if (!file.is_open()) return failed_to("open", path);
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return failed_to("read", path);
  const auto claimed = static_cast<std::size_t>(std::max<off_t>(facts.st_size, 0));
  if (claimed > most_bytes) return too_long(path, most_bytes);
  ByteBuffer bytes;
  std::size_t length = 0;
  bytes.resize(claimed + 1);  // one more: the read that finds the end needs room
  while (true) {
    if (length == bytes.size()) bytes.resize(length + kPiece);
    const ssize_t got = ::read(file.get(), bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed_to("read", path);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
    if (length > most_bytes) return too_long(path, most_bytes);
  }
  bytes.resize(length);
  return bytes;
}

}  // namespace longhaul
